"""Rebuild: the record of a stage that DVC skipped or restored, from dvc.lock and DVC's copies of its outputs."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pipeline.core.config.parsing import value_at
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.simulation.results import Results
from pipeline.tracking import identity
from pipeline.tracking.digests import FOLDER, LOG_STAGE, SourceTree, StoredOutputs, digest_of_files
from pipeline.tracking.identity import STAGE_KEY
from pipeline.tracking.record import Artifact, Curve, Event, Metrics

SHOWN = (".png", ".md", ".html")  # files for people


class Done(NamedTuple):
    """A stage in dvc.lock."""

    title: str
    name: str
    subject: str  # scenario or agent, or ""
    deps: dict[str, str]  # md5 by path
    outs: dict[str, str]
    values: dict[str, Json]  # of params.yaml, by place
    params: dict[str, str]
    tags: dict[str, str]  # of the outputs

    @property
    def key(self) -> str:
        """Return the stage's key."""
        return self.tags[STAGE_KEY]


def done(tree: SourceTree) -> list[Done]:
    """Return the stages of dvc.lock whose rows params.yaml still has, except stage `log`."""
    params, found = tree.params, []
    for title, entry in tree.lock.items():
        name, _, subject = title.partition("@")
        gone = subject and (name == identity.PASSED or subject not in identity.rows_of(params, name))
        if title == LOG_STAGE or gone:
            continue
        try:
            deps, outs = ({item["path"]: item["md5"] for item in entry.get(kind, [])} for kind in ("deps", "outs"))
            values = dict(entry.get("params", {}).get("params.yaml", {}))
            "".join([*deps, *deps.values(), *outs, *outs.values(), *values])  # all of them must be text
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"{tree.where}dvc.lock: {title}: expected outputs and dependencies with their md5"
            ) from error
        own = identity.stage_params(params, name, subject)
        tags = identity.output_tags(title, outs, own)
        found.append(Done(title, name, subject, deps, outs, values, own, tags))
    return found


def stale(tree: SourceTree, stages: list[Done], stored: StoredOutputs) -> list[str]:
    """Return the stages made with other code, params or data than the tree's, and those that depend on them."""
    written = {path: md5 for stage in stages for path, md5 in stage.outs.items()}

    def changed(stage: Done) -> bool:
        if any(value_at(tree.raw_params, place) != value for place, value in stage.values.items()):
            return True
        for path, md5 in stage.deps.items():
            now = written.get(path) or tree.md5(path) or _md5_of_parts(path, written, stored)
            if now is not None and now != md5 and not stored.is_here(path, md5):
                return True
        return False

    found = {stage.title for stage in stages if changed(stage)}
    before = -1
    while len(found) > before:  # dvc.lock has stages in any order
        before = len(found)
        made = {path for stage in stages if stage.title in found for path in stage.outs}
        found |= {
            stage.title
            for stage in stages
            if any(path == dep or path.startswith(f"{dep}/") for path in made for dep in stage.deps)
        }
    return [stage.title for stage in stages if stage.title in found]


def _md5_of_parts(folder: str, written: Mapping[str, str], stored: StoredOutputs) -> str | None:
    """Return the md5 of a folder that several stages write into, if it can be computed."""
    files: dict[str, str] = {}
    for path, md5 in written.items():
        if path.startswith(f"{folder}/"):
            inside = stored.inside(md5) if md5.endswith(FOLDER) else {"": md5}
            if inside is None:
                return None
            name = path.removeprefix(f"{folder}/")
            files |= {f"{name}/{one}".rstrip("/"): digest for one, digest in inside.items()}
    return digest_of_files(files) if files else None


def evidence(stage: Done, tree: SourceTree, stored: StoredOutputs) -> tuple[list[Event], list[str]]:
    """Return the events that a stage's outputs contain, and the outputs that are missing or unreadable."""
    events: list[Event] = []
    missing: list[str] = []
    for path, md5 in stage.outs.items():
        place = stored.find(path, md5)
        try:
            if place is None:
                raise FileNotFoundError(path)
            events += list(_events(path, place, md5, identity.scenario_of(tree.params, stage.name, stage.subject)))
        except (OSError, ValueError, KeyError):
            missing.append(path)
    return events, missing


def _events(path: str, place: Path, md5: str, scenario: str) -> Iterator[Event]:
    """Yield the events of one output, as its stage sent them; `path` is its name in dvc.yaml."""
    if path.startswith("models/"):
        if place.name == "policy":  # the pretrained one is only a step towards it
            yield Artifact(kind="policy", path=place.as_posix(), md5=md5)
    elif read := next((reader for start, reader in READERS.items() if path.startswith(start)), None):
        yield from read(place, scenario)
    else:
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.suffix in SHOWN:
                yield Artifact(kind="figure", path=file.as_posix(), md5="")


def _jobset_counts(place: Path, _: str) -> Iterator[Event]:
    for file in sorted(place.glob("*.parquet")):
        count = len(pd.read_parquet(file, columns=["load", "jobset"]).drop_duplicates())
        yield Metrics(step=0, values={f"jobsets/{file.stem}": count})


def _training(place: Path, _: str) -> Iterator[Event]:
    for step, rows in pd.read_csv(place).groupby("update"):
        yield Metrics(step=int(str(step)), values=dict(zip(rows["metric"], rows["value"], strict=True)))


def _hindsight(place: Path, scenario: str) -> Iterator[Event]:
    frame = pd.read_parquet(place / "hindsight.parquet", columns=["load", "objective"])
    means = frame.groupby("load")["objective"].mean()
    values = {int(load): float(mean) for load, mean in zip(means.index, means, strict=True)}
    yield Curve(name=identity.curve_name("slowdown/hindsight", scenario, values), values=values)


def _results(place: Path, scenario: str) -> Iterator[Event]:
    """Yield each policy's curves over loads, and the chosen knobs."""
    frame = pd.read_parquet(place / "jobsets.parquet")
    for policy, rows in frame.groupby("policy", sort=False):
        for metric, values in Results(rows, rows).curves.items():
            yield Curve(name=identity.curve_name(f"{metric}/{policy}", scenario, values), values=values)
    chosen = place / "chosen.json"
    if chosen.exists():
        knobs = json.loads(chosen.read_text())["knobs"]
        yield Metrics(step=0, values={f"knob/{name}": knob for name, knob in knobs.items()})


def _from_best(place: Path, _: str) -> Iterator[Event]:
    for name, percent in identity.from_best(json.loads(place.read_text())).items():
        yield Curve(name=name, values={0: percent})


READERS: dict[str, Callable[[Path, str], Iterator[Event]]] = {  # by the beginning of the path; the first match counts
    "data/": _jobset_counts,
    "reports/curves/": _training,
    "reports/tables/hindsight/": _hindsight,
    "reports/tables/": _results,
    "reports/metrics.json": _from_best,
}
