"""Publish: make MLflow say what DVC and git know; what it says already stays unchanged.

First come the records that stages left in the spool. Then each stage of a revision's dvc.lock that has no run yet,
because DVC skipped it or restored its outputs from the cache, gets a run with what DVC has stored of it. The whole of
MLflow's database can be rebuilt this way.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from pipeline.errors import UserError
from pipeline.tracking.delivery import Delivery, reason, send_waiting
from pipeline.tracking.digests import md5_of
from pipeline.tracking.identity import PIPELINE_STAGE, STAGE_KEY, STAGE_RESULT, Identity, every_param, stage_tags
from pipeline.tracking.rebuild import Done, done, evidence, stale
from pipeline.tracking.record import FINISHED, SOURCE, WITHOUT, Begin, End, Inputs, Pipeline, Tags
from pipeline.tracking.registry import DELAY, SLOWDOWN, Verdict, Version, bring_up_to_date, verdicts, version
from pipeline.tracking.source_tree import SourceTree
from pipeline.tracking.store import Store, lock, open_store, parent_of
from pipeline.tracking.stored_outputs import StoredOutputs
from pipeline.tracking.targets import Target, chosen

if TYPE_CHECKING:
    from mlflow.entities import Run

PATIENT = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}  # no stage waits for it
OTHERS_S = 60  # longest wait for another `publish` of this clone
CLONES_S = 600.0  # the same of other clones that share the store, for one pipeline run
RESTORED = "restored"
REUSED_FROM = "reused.from"  # tag: the run in which a restored stage ran
MOST_CHILDREN = 10_000


def publish(revs: Sequence[str], everything: bool) -> Iterator[str]:
    """Publish revisions, everything, or the workspace; yield a line on each.

    Raises:
        UserError: MLflow cannot be reached, or a revision that was named, or the workspace, had to be skipped. Of
            everything there is, commits that today's code cannot read are left out with a line each.
    """
    if os.environ.get("PIPELINE_TRACKING", "").lower() == "off":
        yield "publish: nothing, for PIPELINE_TRACKING is off"
        return
    skipped: list[str] = []
    versions: dict[tuple[str, str], Version] = {}  # the verdict of the last revision that has a policy
    with _one_line(), lock("publish.lock", OTHERS_S), TemporaryDirectory() as scratch:
        targets = chosen(revs, everything)
        store = _open()
        for line in send_waiting(store, StoredOutputs(Path(scratch) / "spool").find):
            yield f"publish: {line}"
        for target in targets:
            try:
                found = restore(store, target, Path(scratch) / (target.rev or "workspace"))
                versions |= {(one.agent, one.md5): one for one in found.versions}
                yield f"publish: {found.line}"
            except UserError as error:
                if target.rev is None or not everything:
                    skipped.append(target.title)
                yield f"publish: skipped: {error}"
        if added := bring_up_to_date(store, versions.values()):
            yield f"publish: models: {', '.join(added)} registered"
    if skipped:
        raise UserError(f"publish: {len(skipped)} of {len(targets)} skipped: {', '.join(skipped)}")


def send_left() -> None:
    """Send the records that stages left, and nothing else.

    Raises:
        UserError: MLflow cannot be reached.
    """
    with _one_line(), lock("publish.lock", OTHERS_S), TemporaryDirectory() as scratch:
        for _ in send_waiting(_open(), StoredOutputs(Path(scratch)).find):
            pass


@contextmanager
def _one_line() -> Iterator[None]:
    """Tell what goes wrong with MLflow as a user's error; what was sent stays, and is not sent again."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"publish: {reason(error)}; nothing is lost; once that is fixed, run it again") from error


def _open() -> Store:
    for key, value in PATIENT.items():
        os.environ.setdefault(key, value)
    return open_store(CLONES_S)


class Restored(NamedTuple):
    """What was done for a revision, and the policies that it has."""

    line: str
    versions: list[Version]


def restore(store: Store, target: Target, scratch: Path) -> Restored:
    """Add what MLflow misses of a revision, and return what was done and what is to be registered.

    Raises:
        UserError: dvc.lock is empty, or today's code cannot read it or params.yaml.
    """
    tree, stored = target.tree(), StoredOutputs(scratch, target.rev)
    stages = done(tree)
    if not stages:
        raise UserError(f"{tree.where}dvc.lock: expected stages, found none: run 'dvc repro' first")
    old = stale(tree, stages, stored)
    if len(old) == len(stages):
        remedy = "nothing to publish" if target.rev else "run 'dvc repro' first"
        said = f"{target.title}: all {len(stages)} stages of dvc.lock were made by other code or parameters: {remedy}"
        return Restored(said, [])
    identity = target.identity(tree)
    pipeline = _pipeline(store, identity, target, tree)
    parent = parent_of(store, pipeline)
    _tag_commit(store, parent, identity, target)
    fresh = [stage for stage in stages if stage.title not in old]
    counts = _add(store, fresh, pipeline, parent, tree, stored)
    counted = [f"{count} {what}" for what, count in counts.items() if count]
    counted += [f"{len(old)} stale ({', '.join(old)})"] if old else []
    line = f"{pipeline.title}: {len(stages)} stages, {', '.join(counted)}"
    return Restored(line, _versions(tree, fresh, stored, pipeline.title))


def _add(
    store: Store, stages: list[Done], pipeline: Pipeline, parent: "Run", tree: SourceTree, stored: StoredOutputs
) -> dict[str, int]:
    """Add the stages that the pipeline run misses, and return how many were there, reused and restored."""
    counts = {"recorded": len(stages), "reused": 0, RESTORED: 0}
    if {stage.key for stage in stages} <= _recorded(store, parent):
        return counts
    with store.alone(f"the stages of {pipeline.title}"):
        recorded = _recorded(store, parent)  # by another clone, it may be
        for stage in stages:
            if stage.key not in recorded:
                counts["recorded"] -= 1
                counts[_restore(store, stage, pipeline, parent, tree, stored)] += 1
    return counts


def _versions(tree: SourceTree, stages: list[Done], stored: StoredOutputs, pipeline: str) -> list[Version]:
    """Return the trained policies of some stages, with the verdicts of the comparison if it is one of them."""
    outs = {path: md5 for stage in stages for path, md5 in stage.outs.items()}
    tables = {path: stored.find(path, outs[path]) for path in (SLOWDOWN, DELAY) if path in outs}
    told: dict[str, Verdict] = {}
    if slowdown := tables.get(SLOWDOWN):
        with suppress(OSError, ValueError, KeyError):  # not what today's `compare` writes
            told = verdicts(tree.params, slowdown, tables.get(DELAY))
    return [
        version(tree.params, agent, md5, pipeline, told.get(agent))
        for agent in tree.params.agents
        if (md5 := outs.get(f"models/{agent}/policy"))
    ]


def _pipeline(store: Store, identity: Identity, target: Target, tree: SourceTree) -> Pipeline:
    """Return the pipeline run of a revision; without a name, an experiment of the same content is the one meant."""
    same = f"tags.`pipeline.content` = '{identity.content}' AND tags.stage = '{PIPELINE_STAGE}'"
    found = [] if identity.experiment else store.client.search_runs([store.experiment], same, order_by=["start_time"])
    ids = [run.data.tags["pipeline.id"] for run in found]
    title = identity.pipeline if identity.pipeline in ids or not ids else ids[0]
    tags = {**identity.tags, "pipeline.id": title}
    return Pipeline(title=title, at=target.at, tags=tags, params=every_param(tree.params))


def _tag_commit(store: Store, parent: "Run", identity: Identity, target: Target) -> None:
    """Tag the pipeline run with the commit that holds it; a run of uncommitted code may have been committed since."""
    has = parent.data.tags
    wanted = {"git.rev": target.rev} if target.experiment and target.rev else {}
    if has.get("git.dirty") != "false":
        wanted |= {"git.commit": identity.commit, "git.dirty": identity.dirty}
    for key, value in wanted.items():
        if has.get(key) != value:
            store.client.set_tag(parent.info.run_id, key, value)


def _recorded(store: Store, parent: "Run") -> set[str]:
    """Return the keys of the stages that the pipeline run has."""
    mine = f"tags.`mlflow.parentRunId` = '{parent.info.run_id}' AND attributes.status = '{FINISHED}'"
    found = store.client.search_runs([store.experiment], mine, max_results=MOST_CHILDREN)
    return {run.data.tags.get(STAGE_KEY, "") for run in found}


def _restore(
    store: Store, stage: Done, pipeline: Pipeline, parent: "Run", tree: SourceTree, stored: StoredOutputs
) -> str:
    """Add the run of a stage, and return whether its results were reused or restored."""
    same = f"tags.`{STAGE_RESULT}` = '{stage.tags[STAGE_RESULT]}' AND attributes.status = '{FINISHED}'"
    found: Sequence[Run] = store.client.search_runs([store.experiment], same, max_results=1, order_by=["start_time"])
    # The run in which the stage ran, or the first that was restored.
    origin = next((run.data.tags.get(REUSED_FROM) or str(run.info.run_id) for run in found), None)
    events, missing = evidence(stage, tree, stored)
    begin = Begin(
        id=md5_of(f"{parent.info.run_id} {stage.key}".encode()),
        title=stage.title,
        at=pipeline.at,
        tags={**_tags(stage, pipeline), **({REUSED_FROM: origin} if origin else {})},
        params=stage.params,
        pipeline=pipeline,
    )
    delivery = Delivery(store, begin, lambda path, _: Path(path))
    data = {path: md5 for path, md5 in stage.deps.items() if not path.startswith("pipeline")}
    without = [Tags(tags={WITHOUT: ", ".join(missing)})] if missing else []
    for event in (Inputs(md5=data), *events, *without, End(at=pipeline.at, status=FINISHED)):
        delivery.send(event)
    return "reused" if origin else RESTORED


def _tags(stage: Done, pipeline: Pipeline) -> dict[str, str]:
    return {**pipeline.tags, **stage_tags(stage.name, stage.subject), **stage.tags, SOURCE: RESTORED}
