"""Targets: what can be published: the workspace, a commit, an experiment; each a tree and the pipeline run it is."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.config import repository_root
from pipeline.errors import UserError
from pipeline.tracking.identity import NO_GIT, Identity, identify
from pipeline.tracking.source_tree import CODE, LOCK, SourceTree, git, tree_of, working_tree

SHOWN = 10  # characters of a commit


class Target(NamedTuple):
    """A revision, or the workspace."""

    title: str
    rev: str | None
    experiment: str
    commit: str

    @property
    def at(self) -> int:
        """Return when it was made, in ms; the workspace is of now."""
        made = git("show", "--no-patch", "--format=%ct", self.rev) if self.rev else None
        return int(made or time.time()) * 1000

    def tree(self) -> SourceTree:
        """Return its files."""
        return tree_of(self.rev, self.title) if self.rev else working_tree()

    def identity(self, tree: SourceTree) -> Identity:
        """Return the pipeline run it is."""
        if self.rev is None:
            return identify()
        changed = git("diff", "--quiet", self.commit, self.rev, "--", *CODE) is None
        return Identity(tree.content, self.experiment, self.commit, str(changed).lower())


def chosen(revs: Sequence[str], everything: bool) -> list[Target]:
    """Return what to publish: the named revisions; everything; or the workspace.

    Args:
        revs: commits, tags, branches, names of experiments.
        everything: all experiments, the commits of this branch that changed dvc.lock, HEAD, the workspace.

    Raises:
        UserError: there is no such revision.
    """
    if not revs and not everything:
        return [workspace()]
    experiments = list(_experiments())
    if not everything:
        return [_named(rev, experiments) for rev in revs]
    changed = git("log", "--format=%H", "--reverse", "HEAD", "--", LOCK) or b""
    found_in = dict.fromkeys([*changed.decode().split(), *(_commit("HEAD") or "").split()])
    commits = [commit for commit in found_in if git("cat-file", "-e", f"{commit}:{LOCK}") is not None]
    return [*experiments, *(Target(commit[:SHOWN], commit, "", commit) for commit in commits), workspace()]


def workspace() -> Target:
    """Return the workspace."""
    return Target("workspace", None, "", _commit("HEAD") or NO_GIT)


def _named(rev: str, experiments: list[Target]) -> Target:
    for one in experiments:
        if rev in (one.title, one.rev):
            return one
    commit = _commit(rev)
    if commit is None:
        known_names = ", ".join(sorted(one.title for one in experiments)) or "none"
        raise UserError(
            f"unknown revision '{rev}': expected a commit, tag, branch or experiment; experiments: {known_names}"
        )
    return Target(rev, commit, "", commit)


def _experiments() -> Iterator[Target]:
    """Yield DVC's experiments, each with the commit it starts from."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(str(repository_root())) as repo:
            listed = repo.experiments.ls(all_commits=True)
    except DvcException as error:
        raise UserError(f"experiments cannot be listed: {error}") from error
    for baseline, found in listed.items():
        yield from (Target(name, rev, name, baseline) for name, rev in found)


def _commit(rev: str) -> str | None:
    found = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    return None if found is None else found.decode().strip()
