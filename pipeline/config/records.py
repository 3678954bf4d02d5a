"""What every record of params.yaml is, the types its fields share, and how a problem with one is told."""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pipeline.errors import UserError

Row = TypeVar("Row")
Number = TypeVar("Number", int, float)

Positive = Annotated[int, Field(gt=0)]
Units = Annotated[int, Field(gt=0, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Load = Annotated[int, Field(gt=0, le=1000)]
Rate = Annotated[float, Field(gt=0)]


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
Loads = Annotated[tuple[Load, ...], Field(min_length=1), AfterValidator(_distinct)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Frozen(BaseModel):
    """A record that cannot change and takes no key it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def pick(rows: dict[str, Row], name: str, kind: str) -> Row:
    """Return rows[name], or say which names there are.

    Raises:
        UserError: there is no such name.
    """
    if name not in rows:
        raise UserError(f"unknown {kind} '{name}'; there are: {', '.join(sorted(rows))}")
    return rows[name]


def first_problem(error: ValidationError, where: str) -> str:
    """Return one line for the first problem of a record: its place, what is wrong, what was found."""
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"]) or "top level"
    found = "" if problem["type"] == "missing" else f", got {problem['input']!r}"
    said = {"extra_forbidden": "unknown key", "missing": "missing key"}.get(problem["type"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {place}: {said or problem['msg']}{'' if said else found}{more}"
