"""Rebuild: the record of a stage that DVC skipped or restored, from dvc.lock and from what DVC kept of its outputs."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.config.parsing import value_at
from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.tracking.identity import (
    PASSED,
    STAGE_KEY,
    curve_name,
    from_best,
    output_tags,
    rows_of,
    scenario_of,
    stage_params,
)
from pipeline.tracking.record import Curve, Event, Figure, Metrics, Policy
from pipeline.tracking.source_tree import LOG_STAGE, SourceTree
from pipeline.tracking.stored_outputs import FOLDER, StoredOutputs

SHOWN = (".png", ".md", ".html")  # what people look at


class Done(NamedTuple):
    """A stage as dvc.lock has it."""

    title: str
    deps: dict[str, str]  # md5 by path
    outs: dict[str, str]
    values: dict[str, Json]  # of params.yaml, by place
    params: dict[str, str]

    @property
    def name(self) -> str:
        """Return the stage without its subject."""
        return self.title.partition("@")[0]

    @property
    def subject(self) -> str:
        """Return the scenario or agent; "" where there is none."""
        return self.title.partition("@")[2]

    @property
    def tags(self) -> dict[str, str]:
        """Return what a stage says of its outputs when it ends."""
        return output_tags(self.title, self.outs, self.params)

    @property
    def key(self) -> str:
        """Return the stage's key."""
        return self.tags[STAGE_KEY]


def done(tree: SourceTree) -> list[Done]:
    """Return the stages of dvc.lock that params.yaml still has, but for the log."""
    params, found = tree.params, []
    for title, entry in tree.lock.items():
        name, _, subject = title.partition("@")
        if title == LOG_STAGE or (subject and (name == PASSED or subject not in rows_of(params, name))):
            continue
        try:
            deps, outs = ({item["path"]: item["md5"] for item in entry.get(kind, [])} for kind in ("deps", "outs"))
            values = dict(entry.get("params", {}).get("params.yaml", {}))
            "".join([*deps, *deps.values(), *outs, *outs.values(), *values])  # words, all of them
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"{tree.where}dvc.lock: {title}: expected outputs and dependencies with their md5"
            ) from error
        found.append(Done(title, deps, outs, values, stage_params(params, name, subject)))
    return found


def stale(tree: SourceTree, stages: list[Done], stored: StoredOutputs) -> list[str]:
    """Return the stages that ran with other code, params or data than the tree's, or on what such a stage made."""
    found = {stage.title for stage in stages if _is_stale(stage, tree, stages, stored)}
    before = -1
    while len(found) > before:  # dvc.lock has stages in any order
        before = len(found)
        made = {path for stage in stages if stage.title in found for path in stage.outs}
        found |= {stage.title for stage in stages if any(_reads(stage, path) for path in made)}
    return [stage.title for stage in stages if stage.title in found]


def _reads(stage: Done, path: str) -> bool:
    return any(path == dep or path.startswith(f"{dep}/") for dep in stage.deps)


def _is_stale(stage: Done, tree: SourceTree, stages: list[Done], stored: StoredOutputs) -> bool:
    if any(value_at(tree.raw_params, place) != value for place, value in stage.values.items()):
        return True
    written = {path: md5 for other in stages for path, md5 in other.outs.items()}
    for path, md5 in stage.deps.items():
        now = written.get(path) or tree.md5(path) or _together(path, written, stored)
        if now is not None and now != md5 and not stored.is_here(path, md5):
            return True
    return False


def _together(folder: str, written: Mapping[str, str], stored: StoredOutputs) -> str | None:
    """Return the md5 of a folder that several stages write into, where that can be known."""
    from pipeline.tracking.digests import digest_of_files

    files: dict[str, str] = {}
    for path, md5 in written.items():
        if not path.startswith(f"{folder}/"):
            continue
        name = path.removeprefix(f"{folder}/")
        inside = stored.inside(md5) if md5.endswith(FOLDER) else {"": md5}
        if inside is None:
            return None
        files |= {f"{name}/{one}".rstrip("/"): digest for one, digest in inside.items()}
    return digest_of_files(files) if files else None


def evidence(stage: Done, tree: SourceTree, stored: StoredOutputs) -> tuple[list[Event], list[str]]:
    """Return the events of a stage that its outputs tell, and the outputs that are kept nowhere or cannot be read."""
    events: list[Event] = []
    missing: list[str] = []
    for path, md5 in stage.outs.items():
        place = stored.find(path, md5)
        reader = next(reader for start, reader in READERS.items() if path.startswith(start))
        if place is None:
            missing.append(path)
            continue
        try:
            events += list(reader(place, md5, scenario_of(tree.params, stage.name, stage.subject)))
        except (OSError, ValueError, KeyError):
            missing.append(path)
    return events, missing


Reader = Callable[[Path, str, str], Iterator[Event]]


def _jobsets(place: Path, _: str, __: str) -> Iterator[Event]:
    """Say how many jobsets of each split there are."""
    import pandas as pd

    for file in sorted(place.glob("*.parquet")):
        count = len(pd.read_parquet(file, columns=["load", "jobset"]).drop_duplicates())
        yield Metrics(step=0, values={f"jobsets/{file.stem}": count})


def _policy(place: Path, md5: str, _: str) -> Iterator[Event]:
    """Give the model that is served; the pretrained one is only a step to it."""
    if place.name == "policy":
        yield Policy(path=place.as_posix(), md5=md5)


def _training(place: Path, _: str, __: str) -> Iterator[Event]:
    """Give the curve of a training."""
    import pandas as pd

    for step, rows in pd.read_csv(place).groupby("update"):
        yield Metrics(step=int(str(step)), values=dict(zip(rows["metric"], rows["value"], strict=True)))


def _results(place: Path, _: str, scenario: str) -> Iterator[Event]:
    """Give what each policy's results are over loads, as the stage did, and the knobs that it chose."""
    import pandas as pd

    from pipeline.simulation.results import Results

    frame = pd.read_parquet(place / "jobsets.parquet")
    for policy, rows in frame.groupby("policy", sort=False):
        for what, values in Results(rows, rows).curves.items():
            yield Curve(name=curve_name(f"{what}/{policy}", scenario, values), values=values)
    chosen = place / "chosen.json"
    if chosen.exists():
        knobs = json.loads(chosen.read_text())["knobs"]
        yield Metrics(step=0, values={f"knob/{name}": knob for name, knob in knobs.items()})


def _hindsight(place: Path, _: str, scenario: str) -> Iterator[Event]:
    """Give the slowdown of the best schedules over loads, as the stage did."""
    import pandas as pd

    frame = pd.read_parquet(place / "hindsight.parquet", columns=["load", "objective"])
    means = frame.groupby("load")["objective"].mean()
    values = {int(load): float(mean) for load, mean in zip(means.index, means, strict=True)}
    yield Curve(name=curve_name("slowdown/hindsight", scenario, values), values=values)


def _from_best(place: Path, _: str, __: str) -> Iterator[Event]:
    """Give every agent's percent from the best heuristic."""
    for name, percent in from_best(json.loads(place.read_text())).items():
        yield Curve(name=name, values={0: percent})


def _figures(place: Path, _: str, __: str) -> Iterator[Event]:
    """Give what people look at."""
    for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if file.suffix in SHOWN:
            yield Figure(path=file.as_posix(), md5="")


# By the beginning of the path; the first that fits.
READERS: dict[str, Reader] = {
    "data/": _jobsets,
    "models/": _policy,
    "reports/curves/": _training,
    "reports/tables/hindsight/": _hindsight,
    "reports/tables/": _results,
    "reports/metrics.json": _from_best,
    "": _figures,
}
