"""What differs between the last commit's run and this one: metrics, parameters, outputs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from pipeline.core.config.parsing import value_at
from pipeline.core.storage.evidence import Lock
from pipeline.core.types import Json

METRIC_COLUMNS = ("scenario", "load", "policy", "slowdown")
MOST_SHOWN, MOST_NAMED = 20, 5
NONE = "-"


class Change(NamedTuple):
    """One difference; before or after is a dash if it did not exist."""

    what: str
    before: str
    after: str
    note: str = ""


class Changes(NamedTuple):
    """Differences from a commit, or the reason for no comparison."""

    against: str  # the commit, or the reason
    compared: bool = False
    metrics: Sequence[Change] = ()  # the largest moves first; the page lists MOST_SHOWN of them
    parameters: Sequence[Change] = ()
    outputs: Sequence[Change] = ()


def moved(before: pd.DataFrame | None, after: pd.DataFrame) -> list[Change]:
    """Return the mean slowdowns that moved, the largest relative move first, after new and lost policies."""
    old, new = ({} if frame is None else _slowdowns(frame) for frame in (before, after))
    found = []
    for key in dict.fromkeys([*new, *old]):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        size = float("inf") if was is None or now is None else now / was - 1
        note = ("new" if was is None else "gone") if was is None or now is None else f"{100 * size:+.2f} %"
        what = f"{key[0]}, load {key[1]}, {key[2]}"
        found.append((abs(size), Change(what, _number(was), _number(now), note)))
    return [change for _, change in sorted(found, key=lambda pair: -pair[0])]


def _slowdowns(summary: pd.DataFrame) -> dict[tuple[str, int, str], float]:
    rows = summary[list(METRIC_COLUMNS)].itertuples(index=False)
    return {(scenario, int(load), policy): float(slowdown) for scenario, load, policy, slowdown in rows}


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.6g}"


def differing(before: Lock, after: Lock) -> list[Change]:
    """Return the outputs whose md5 differs between two dvc.lock files, in the order of the second."""
    old, new = ({out.path: out.md5 or NONE for out in lock.outs} for lock in (before, after))
    pairs = ((path, old.get(path, NONE), new.get(path, NONE)) for path in dict.fromkeys([*new, *old]))
    return [Change(path, was, now) for path, was, now in pairs if was != now]


def flat(values: Json, place: str = "") -> dict[str, str]:
    """Return the leaves of nested mappings by their place.

    >>> flat({"seed": 1, "a": {"b": [1, 2], "c": None}})
    {'seed': '1', 'a.b': '[1, 2]', 'a.c': 'null'}
    """
    if not (isinstance(values, Mapping) and values):
        return {place: "null" if values is None else str(values)}
    inside = (flat(value, f"{place}.{name}" if place else str(name)) for name, value in values.items())
    return {name: value for leaves in inside for name, value in leaves.items()}


def revalued(before: Json, after: Json, place: str = "") -> Iterator[Change]:
    """Yield the parameters that differ; a row that was added or removed counts as one.

    >>> list(revalued({"seed": 1, "a": {"b": 1}}, {"seed": 2}))
    [Change(what='seed', before='1', after='2', note=''), Change(what='a', before='1 value', after='-', note='gone')]
    """
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if before != after:
            note = "new" if before is None else "gone" if after is None else ""
            yield Change(place, _shown(before), _shown(after), note)
        return
    for name in dict.fromkeys([*after, *before]):
        yield from revalued(before.get(name), after.get(name), f"{place}.{name}" if place else str(name))


def _shown(value: Json) -> str:
    if not isinstance(value, Mapping):
        return NONE if value is None else str(value)
    leaves = len(flat(value))
    return f"{leaves} value{'s' if leaves != 1 else ''}"


def stale(lock: Lock, params: Json) -> list[str]:
    """Return the parameters that have changed since the outputs were made."""
    found: dict[str, None] = {}
    for params_used in lock.params:
        for name, used in params_used.items():
            found |= dict.fromkeys(change.what for change in revalued(used, value_at(params, name), name))
    return list(found)


def warnings(missing: Sequence[str], changed: Sequence[str], forgotten: Collection[str] = ()) -> list[str]:
    """Return warnings about agents without results, parameters newer than the results, and stages of removed rows.

    >>> warnings(["net"], ["agents.net", "seed"])[1]
    "params.yaml has changed since these results were made (seed): run 'dvc repro'."
    >>> warnings([], [], ["pretrain@net", "finetune@net"])
    ["dvc.lock keeps what rows left that params.yaml does not have (net): run 'python -m pipeline prune'."]
    """
    notes = [f"No results yet of {', '.join(missing)}: run 'dvc repro'."] if missing else []
    news = [name for name in changed if name.removeprefix("agents.") not in missing]
    if news:
        more = f" and {len(news) - MOST_NAMED} more" if len(news) > MOST_NAMED else ""
        named = f"{', '.join(news[:MOST_NAMED])}{more}"
        notes.append(f"params.yaml has changed since these results were made ({named}): run 'dvc repro'.")
    if forgotten:
        rows = ", ".join(dict.fromkeys(stage.partition("@")[2] for stage in forgotten))
        kept = f"dvc.lock keeps what rows left that params.yaml does not have ({rows})"
        notes.append(f"{kept}: run 'python -m pipeline prune'.")
    return notes
