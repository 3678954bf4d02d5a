"""Decisions of a policy: concatenated, compared and counted."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import comparison
from pipeline.core.config import Evaluation
from pipeline.errors import UserError
from pipeline.simulation.results import Results

NO_CHOICE = "nothing to explain: in the test jobsets that are looked at there is never a choice while a job could start"

Record = TypeVar("Record", bound=tuple[Any, ...])  # a NamedTuple of arrays [D, ...], or of such records
OneJobset = TypeVar("OneJobset")


def few(jobsets: Mapping[int, Sequence[OneJobset]], most: int) -> dict[int, Sequence[OneJobset]]:
    """Return the first jobsets of each load."""
    return {load: some[:most] for load, some in jobsets.items()}


def within(jobsets: Mapping[int, Sequence[Any]], most: int, jobs: int) -> dict[int, Sequence[Any]]:
    """Return the first jobsets of each load, up to `most` and `jobs` jobs in all, but at least one jobset."""
    each = sum(len(some[0].arrival) for some in jobsets.values() if len(some))
    return few(jobsets, max(1, min(most, jobs // max(each, 1))))


def joined(parts: Sequence[Record]) -> Record:
    """Concatenate records of decisions."""
    if not any(len(part[0]) for part in parts):
        raise UserError(NO_CHOICE)
    return _joined(parts)


def _joined(parts: Sequence[Record]) -> Record:
    columns = zip(*parts, strict=True)
    fields = [np.concatenate(some) if isinstance(some[0], np.ndarray) else _joined(some) for some in columns]
    made: Record = cast("Any", parts[0])._make(fields)
    return made


def outcomes_by(
    column: str,
    parts: Mapping[str, pd.DataFrame],
    scenario: str,
    references: Sequence[str],
    settings: Evaluation,
    seed: int,
) -> pd.DataFrame:
    """Return COMPARISON of policies in several tables of jobsets, concatenated; a first column names the table."""
    frames = []
    for name, part in parts.items():
        against = {one: dict.fromkeys(part["load"].unique(), one) for one in references}
        found = comparison(part, scenario, against, settings, np.random.default_rng(seed))
        frames.append(found.assign(**{column: name})[[column, *found.columns]])
    return pd.concat(frames, ignore_index=True)


def jobsets_of(results: Mapping[str, Results]) -> pd.DataFrame:
    """Return the results of all policies on each jobset."""
    return pd.concat([done.jobsets for done in results.values()], ignore_index=True)


def mean_of(table: pd.DataFrame, name: str, count: str = "decisions") -> float:
    """Return the mean of a column, weighted by a column of counts.

    >>> mean_of(pd.DataFrame({"part": [0.5, 1.0, np.nan], "decisions": [3, 1, 0]}), "part")
    0.625
    """
    there = table[table[count] > 0]
    return float((there[name] * there[count]).sum() / there[count].sum())
