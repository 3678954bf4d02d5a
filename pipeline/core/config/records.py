"""Base class and field types of the records of params.yaml, and messages about invalid ones."""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

NAME = r"^[a-z][a-z0-9_]*$"
NAMED = "expected a name of small letters, digits and _, a letter first"
LONGEST_SHOWN = 80  # characters of a wrong value
DISCRIMINATORS = ("name", "problem", "algorithm")  # keys that select the record of a union
# Renamed keys, with the message to users.
RENAMED = {
    "told": "this key is called 'policies_know' now",
    "each_user": "use a row of 'quotas', as {each: user, cpus: 64}",
    "swing": "this key is called 'amplitude' now",
    "sure": "this key is called 'min_z' now",
    "loads_alike": "this key is called 'equal_loads' now",
}

Row = TypeVar("Row")
Number = TypeVar("Number", int, float)

Doubt = Literal["times", "limits", "size", "load", "misfits"]
Positive = Annotated[int, Field(gt=0)]
Many = Annotated[int, Field(gt=0, le=1_000_000)]  # number of things that are all held in memory
Units = Annotated[int, Field(gt=0, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Load = Annotated[int, Field(gt=0, le=1000)]
Rate = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]
Wide = Annotated[int, Field(gt=0, le=10_000)]  # units of a network's layer
Seed = Annotated[int, Field(ge=0, lt=2**63)]


def _ordered(span: tuple[Number, Number]) -> tuple[Number, Number]:
    if span[0] > span[1]:
        raise ValueError(f"expected [low, high] with low <= high, got {list(span)}")
    return span


def _distinct(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(values)) != len(values):
        raise ValueError(f"expected distinct values, got {list(values)}")
    return values


StepRange = Annotated[tuple[Positive, Positive], AfterValidator(_ordered)]
ShareRange = Annotated[tuple[PositiveShare, PositiveShare], AfterValidator(_ordered)]
Instances = Literal["one", "each"]  # a job for each task of a log, or for each of a task's instances
Loads = Annotated[tuple[Load, ...], Field(min_length=1), AfterValidator(_distinct)]
Name = Annotated[str, Field(pattern=NAME)]


class Frozen(BaseModel):
    """An immutable record without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Counts(Frozen):
    """Number of jobsets of each load in each split."""

    train: Many  # jobsets to learn from
    validation: Many  # jobsets to choose by
    test: Many  # jobsets to report


class Periods(Frozen):
    """Shares of a log for training and validation; the rest is for tests."""

    train_share: PositiveShare = 0.6  # of the jobs, in order of time
    validation_share: PositiveShare = 0.15  # of the jobs, after those of training
    # Signs of a misread log that are accepted, by the words that `trace` reports.
    accept: Annotated[tuple[Doubt, ...], Field(exclude_if=lambda words: not words)] = ()

    @model_validator(mode="after")
    def _leave_a_test_period(self) -> "Periods":
        if self.train_share + self.validation_share >= 1:
            raise ValueError("expected train_share + validation_share below 1, so that a test period is left")
        return self


def none_of(columns: Collection[str]) -> Callable[[dict[str, Number]], dict[str, Number]]:
    """Return a validator that refuses resources with the name of a column of job tables."""

    def checked(resources: dict[str, Number]) -> dict[str, Number]:
        for name in resources:
            if name in columns:
                raise ValueError(f"'{name}' is a column of job tables; give the resource another name")
        return resources

    return checked


def pick(rows: dict[str, Row], name: str, kind: str) -> Row:
    """Return rows[name]; a UserError with the known names if there is none."""
    if name not in rows:
        raise UserError(f"unknown {kind} '{name}'; {known_names(rows, name)}")
    return rows[name]


def check_known(where: str, place: str, name: str, rows: Collection[str]) -> None:
    """Refuse a name that is not among the rows, with a UserError."""
    if name not in rows:
        raise UserError(f"{where}: {place}: unknown '{name}'; {known_names(rows, name)}")


def known_names(known: Iterable[str], name: str) -> str:
    """Return the known names, and the nearest one to an unknown name.

    >>> known_names(["online", "offline"], "onlin")
    "there are: offline, online; did you mean 'online'?"
    """
    names = sorted(known)
    return f"there are: {', '.join(names) or 'none'}{_nearest(names, name)}"


def _nearest(known: Sequence[str], name: str) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def first_error(error: ValidationError, raw: Any, where: str, others: str = "") -> str:
    """Return one line for the first problem of a record: its place, what is wrong, the value.

    `raw` is the checked value, to find the keys in pydantic's locations; `others` says how to see the other problems.
    """
    first, *more = all_errors(error, raw, where)
    return f"{first} (and {len(more)} more{others})" if more else first


def all_errors(error: ValidationError, raw: Any, where: str) -> list[str]:
    """Return a line for each problem of a record; unknown keys first."""
    # A misspelt key is also a missing one; only the former can be found in the file.
    problems = sorted(error.errors(), key=lambda wrong: wrong["type"] != "extra_forbidden")
    lines = []
    for problem in problems:
        keys = _keys(problem["loc"], raw)
        if problem["type"].startswith("union_tag"):
            keys.append(problem["ctx"]["discriminator"].strip("'"))
        lines.append(f"{where}: {'.'.join(keys) or 'top level'}: {_message(problem, problems)}")
    return lines


def _message(problem: "ErrorDetails", problems: "Sequence[ErrorDetails]") -> str:
    kind, expected = problem["type"], problem.get("ctx", {})
    if kind in ("missing", "union_tag_not_found"):
        return "missing key"
    if kind == "extra_forbidden":
        *around, key = problem["loc"]
        absent = [
            str(wrong["loc"][-1]) for wrong in problems if wrong["type"] == "missing" and [*wrong["loc"][:-1]] == around
        ]
        return RENAMED.get(str(key)) or f"unknown key{_nearest(absent, str(key))}"
    if kind == "value_error":  # one of ours, with the value
        return str(expected["error"])
    if kind == "union_tag_invalid":
        return f"unknown '{expected['tag']}'; there are: {expected['expected_tags']}"
    if kind == "too_short":
        return f"expected at least {expected['min_length']}, got {_shown(problem['input'])}"
    pattern = kind == "string_pattern_mismatch"  # only names have one
    wanted = NAMED if pattern else problem["msg"].replace("Input should be ", "expected ", 1)
    return f"{wanted}, got {_shown(problem['input'])}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _keys(place: tuple[int | str, ...], raw: Any) -> list[str]:
    """Return the keys of a location, without pydantic's names of the selected records of unions."""
    keys, selected = [], False
    for part in place:
        if isinstance(raw, Mapping) and not selected and part in (raw.get(key) for key in DISCRIMINATORS):
            selected = True  # only once: the record may have a key of that name, such as `groups`
            continue
        selected = False
        if str(part).startswith("["):  # pydantic's mark of a key itself, and our unions without a selecting key
            continue
        keys.append(str(part))
        named = isinstance(raw, Mapping) and part in raw
        counted = isinstance(raw, Sequence) and isinstance(part, int) and part < len(raw)
        raw = raw[part] if named or counted else None
    return keys
