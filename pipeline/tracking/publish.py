"""Publish: add to MLflow what DVC and git know; existing entries stay unchanged.

First come the records in the spool. Then each stage of a revision's dvc.lock that has no run yet, because DVC skipped
it or restored its outputs from the cache, gets a run from DVC's data. All of MLflow's database can be rebuilt this way.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from pipeline.core.config import load_params, repository_root
from pipeline.core.config.git import CODE, git
from pipeline.errors import UserError
from pipeline.tracking import identity as ids
from pipeline.tracking.changes import RECENT, compare_runs, paired
from pipeline.tracking.delivery import OTHERS_S, Delivery, reason, send_waiting
from pipeline.tracking.digests import LOCK, SourceTree, StoredOutputs, md5_of, tree_of, working_tree
from pipeline.tracking.identity import Identity
from pipeline.tracking.rebuild import Done, done, evidence, stale
from pipeline.tracking.record import FINISHED, SOURCE, WITHOUT, Begin, End, Inputs, Pipeline, Tags
from pipeline.tracking.registry import DELAY, SLOWDOWN, Version, bring_up_to_date, versions
from pipeline.tracking.store import Store, lock, open_store, parent_of

if TYPE_CHECKING:
    from mlflow.entities import Run

PATIENT = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}  # no stage waits for it
CLONES_S = 600.0  # longest wait for other clones that share the store, for one pipeline run
MOST_CHILDREN = 10_000
RESTORED = "restored"
REUSED_FROM = "reused.from"  # tag: the run in which a restored stage ran
SHOWN = 10  # characters of a commit


class Target(NamedTuple):
    """A revision to publish, or the workspace."""

    title: str
    rev: str | None
    experiment: str
    commit: str

    @property
    def at(self) -> int:
        """Return the time of the target in ms; for the workspace, the present."""
        made = git("show", "--no-patch", "--format=%ct", self.rev) if self.rev else None
        return int(made or time.time()) * 1000

    def identity(self, tree: SourceTree) -> Identity:
        """Return the pipeline run of the target."""
        if self.rev is None:
            return ids.identify()
        changed = git("diff", "--quiet", self.commit, self.rev, "--", *CODE) is None
        return Identity(tree.content, self.experiment, self.commit, str(changed).lower())


def publish(revs: Sequence[str], everything: bool) -> Iterator[tuple[str, dict[str, object]]]:
    """Publish revisions, everything, or the workspace; yield a line on each, and its data.

    `revs` are commits, tags, branches and names of experiments. `everything` is all experiments, the commits of this
    branch that changed dvc.lock, HEAD and the workspace; commits that today's code cannot read are skipped with a line
    each. Raises UserError: MLflow cannot be reached, or a named revision or the workspace had to be skipped.
    """
    if os.environ.get("PIPELINE_TRACKING", "").lower() == "off":
        yield "publish: skipped, because PIPELINE_TRACKING is off", {"skipped": "PIPELINE_TRACKING is off"}
        return
    skipped: list[str] = []
    latest: dict[tuple[str, str], Version] = {}  # of each policy, by the last revision that has it
    with _one_line(), lock("publish.lock", OTHERS_S), TemporaryDirectory() as scratch:
        targets = _targets(revs, everything)
        store = _open()
        for line in send_waiting(store, StoredOutputs(Path(scratch) / "spool").find):
            yield f"publish: {line}", {"spool": line}
        for target in targets:
            try:
                line, data, found = _restore(store, target, Path(scratch) / (target.rev or "workspace"))
                latest |= {(one.agent, one.md5): one for one in found}
                yield f"publish: {line}", {"revision": target.title, **data}
            except UserError as error:
                if target.rev is None or not everything:
                    skipped.append(target.title)
                yield f"publish: skipped: {error}", {"revision": target.title, "skipped": str(error)}
        if added := bring_up_to_date(store, latest.values()):
            yield f"publish: models: {', '.join(added)} registered", {"models": added}
        _compare(store)
    if skipped:
        raise UserError(f"publish: {len(skipped)} of {len(targets)} skipped: {', '.join(skipped)}")


def send_left() -> None:
    """Send only the records in the spool, or raise UserError if MLflow cannot be reached."""
    with _one_line(), lock("publish.lock", OTHERS_S), TemporaryDirectory() as scratch:
        store = _open()
        list(send_waiting(store, StoredOutputs(Path(scratch)).find))
        _compare(store)


def _compare(store: Store) -> None:
    with suppress(UserError):  # today's params.yaml cannot be read: the next run describes what is left
        compare_runs(store, load_params(), RECENT)


@contextmanager
def _one_line() -> Iterator[None]:
    """Report MLflow's failures as a UserError of one line; records already sent stay and are not sent again."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"publish: {reason(error)}; no result is lost; once that is fixed, run it again") from error


def _open() -> Store:
    for key, value in PATIENT.items():
        os.environ.setdefault(key, value)
    return open_store(CLONES_S)


def _targets(revs: Sequence[str], everything: bool) -> list[Target]:
    workspace = Target("workspace", None, "", _commit("HEAD") or ids.NO_GIT)
    if not revs and not everything:
        return [workspace]
    experiments = list(_experiments())
    if not everything:
        return [_named(rev, experiments) for rev in revs]
    changed = git("log", "--format=%H", "--reverse", "HEAD", "--", LOCK.name) or b""
    found_in = dict.fromkeys([*changed.decode().split(), *(_commit("HEAD") or "").split()])
    commits = [commit for commit in found_in if git("cat-file", "-e", f"{commit}:{LOCK}") is not None]
    return [*experiments, *(Target(commit[:SHOWN], commit, "", commit) for commit in commits), workspace]


def _named(rev: str, experiments: list[Target]) -> Target:
    for one in experiments:
        if rev in (one.title, one.rev):
            return one
    if (commit := _commit(rev)) is None:
        known_names = ", ".join(sorted(one.title for one in experiments)) or "none"
        raise UserError(
            f"unknown revision '{rev}': expected a commit, tag, branch or experiment; experiments: {known_names}"
        )
    return Target(rev, commit, "", commit)


def _experiments() -> Iterator[Target]:
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


def _restore(store: Store, target: Target, scratch: Path) -> tuple[str, dict[str, object], list[Version]]:
    """Add the missing entries of a revision; return its line, its data and the policies to register."""
    tree = tree_of(target.rev, target.title) if target.rev else working_tree()
    stored = StoredOutputs(scratch, target.rev)
    stages = done(tree)
    if not stages:
        raise UserError(f"{tree.where}dvc.lock: expected stages, found none: run 'dvc repro' first")
    old = stale(tree, stages, stored)
    if len(old) == len(stages):
        remedy = "nothing to publish" if target.rev else "run 'dvc repro' first"
        made = f"all {len(stages)} stages of dvc.lock were made by other code or parameters"
        return f"{target.title}: {made}: {remedy}", {"stale": old}, []
    identity = target.identity(tree)
    # A revision without an experiment's name means the experiment with the same content, if there is one.
    same = f"tags.`pipeline.content` = '{identity.content}' AND tags.stage = '{ids.PIPELINE_STAGE}'"
    runs = [] if identity.experiment else store.client.search_runs([store.experiment], same, order_by=["start_time"])
    found = [run.data.tags["pipeline.id"] for run in runs]
    title = identity.pipeline if identity.pipeline in found or not found else found[0]
    tags = {**identity.tags, "pipeline.id": title}
    pipeline = Pipeline(title=title, at=target.at, tags=tags, params=ids.every_param(tree.params))
    parent = parent_of(store, pipeline)
    _tag_commit(store, parent, identity, target)
    fresh = [stage for stage in stages if stage.title not in old]
    counts = {"recorded": 0, "reused": 0, RESTORED: 0, **_add(store, fresh, pipeline, parent, tree, stored)}
    counted = [f"{count} {what}" for what, count in counts.items() if count]
    counted += [f"{len(old)} stale ({', '.join(old)})"] if old else []
    line = f"{title}: {len(stages)} stages, {', '.join(counted)}"
    return line, {"pipeline": title, **counts, "stale": old}, _versions(tree, fresh, stored, title)


def _tag_commit(store: Store, parent: "Run", identity: Identity, target: Target) -> None:
    """Tag the pipeline run with its commit; the uncommitted code of a run may have been committed since."""
    has = parent.data.tags
    wanted = {"git.rev": target.rev} if target.experiment and target.rev else {}
    if has.get("git.dirty") != "false":
        wanted |= {"git.commit": identity.commit, "git.dirty": identity.dirty}
    for key, value in wanted.items():
        if has.get(key) != value:
            store.client.set_tag(parent.info.run_id, key, value)


def _versions(tree: SourceTree, stages: list[Done], stored: StoredOutputs, pipeline: str) -> list[Version]:
    """Return the trained policies of some stages, with the verdicts of the comparison if it is one of them."""
    outs = {path: md5 for stage in stages for path, md5 in stage.outs.items()}
    slowdown, delay = (stored.find(path, outs.get(path, "")) for path in (SLOWDOWN, DELAY))
    policies = {agent: outs[path] for agent in tree.params.agents if (path := f"models/{agent}/policy") in outs}
    return versions(tree.params, policies, pipeline, slowdown, delay)


def _add(
    store: Store, stages: list[Done], pipeline: Pipeline, parent: "Run", tree: SourceTree, stored: StoredOutputs
) -> Counter[str]:
    """Add the missing stages of a pipeline run, and count the stages recorded before, reused and restored."""

    def recorded() -> set[str]:
        mine = f"tags.`mlflow.parentRunId` = '{parent.info.run_id}' AND attributes.status = '{FINISHED}'"
        found = store.client.search_runs([store.experiment], mine, max_results=MOST_CHILDREN)
        return {run.data.tags.get(ids.STAGE_KEY, "") for run in found}

    if {stage.key for stage in stages} <= recorded():
        return Counter(recorded=len(stages))
    with store.exclusive(f"the stages of {pipeline.title}"):
        there = recorded()  # another clone may have been first
        return Counter(
            "recorded" if stage.key in there else _add_stage(store, stage, pipeline, parent, tree, stored)
            for stage in stages
        )


def _add_stage(
    store: Store, stage: Done, pipeline: Pipeline, parent: "Run", tree: SourceTree, stored: StoredOutputs
) -> str:
    """Add the run of a stage, and return whether its results were reused or restored."""
    same = f"tags.`{ids.STAGE_RESULT}` = '{stage.tags[ids.STAGE_RESULT]}' AND attributes.status = '{FINISHED}'"
    found: Sequence[Run] = store.client.search_runs([store.experiment], same, max_results=1, order_by=["start_time"])
    # The run in which the stage ran, or the first that was restored.
    origin = next((run.data.tags.get(REUSED_FROM) or str(run.info.run_id) for run in found), None)
    events, missing = evidence(stage, tree, stored)
    tags = {**pipeline.tags, **ids.stage_tags(stage.name, stage.subject), **stage.tags, SOURCE: RESTORED}
    begin = Begin(
        id=md5_of(f"{parent.info.run_id} {stage.key}".encode()),
        title=stage.title,
        at=pipeline.at,
        tags={**tags, **({REUSED_FROM: origin} if origin else {})},
        params=stage.params,
        pipeline=pipeline,
    )
    delivery = Delivery(store, begin, lambda path, _: Path(path))
    data = {path: md5 for path, md5 in stage.deps.items() if not path.startswith("pipeline")}
    if stage.name == "compare":
        outs = {out["path"]: out.get("md5") for entry in tree.lock.values() for out in entry.get("outs", [])}
        data |= {path: outs[path] for path in paired(tree.params, tree.params.agents) if outs.get(path)}
    without = [Tags(tags={WITHOUT: ", ".join(missing)})] if missing else []
    for event in (Inputs(md5=data), *events, *without, End(at=pipeline.at, status=FINISHED)):
        delivery.send(event)
    return "reused" if origin else RESTORED
