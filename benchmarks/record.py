"""One figure of the benchmark, as stored in `reports/bench.json`."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from pipeline.core import storage
from pipeline.core.config import Frozen
from pipeline.core.storage.files import one_line
from pipeline.errors import UserError

TIMES = ("s", "ms")  # units of figures that a slowdown makes larger; rates, which end in /s, become smaller
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Figure(Frozen):
    """A measured quantity: median, minimum and maximum of several runs."""

    name: Annotated[str, Field(min_length=1)]
    value: Finite
    unit: str
    min: Finite
    max: Finite
    baseline: Finite | None  # median of the baseline's runs, in the same unit; None for an exponent
    ratio: Finite | None  # how many times better than the baseline; above 1 is better, whatever the unit
    target: str | None
    holds: bool | None


class Row(NamedTuple):
    """A figure and a description of its baseline."""

    figure: Figure
    against: str


class Target(NamedTuple):
    """Target of a figure; None is no requirement."""

    most: float | None = None  # of the value
    least: float | None = None
    ratio: float | None = None  # minimum ratio to the baseline

    def text(self, unit: str) -> str | None:
        """Return the target as text.

        >>> Target(most=1.0, ratio=15).text("s")
        '<= 1 s, >= 15 x'
        """
        parts = [
            f"{sign} {bound:g} {of}".rstrip()
            for sign, bound, of in (("<=", self.most, unit), (">=", self.least, unit), (">=", self.ratio, "x"))
            if bound is not None
        ]
        return ", ".join(parts) or None

    @classmethod
    def read(cls, text: str) -> "Target":
        """Parse a target as `text` writes it.

        >>> Target.read("<= 1 s, >= 15 x")
        Target(most=1.0, least=None, ratio=15.0)
        """
        bounds: dict[str, float] = {}
        for part in text.split(", "):
            sign, bound, *of = part.split(" ", 2)
            bounds["most" if sign == "<=" else "ratio" if of == ["x"] else "least"] = float(bound)
        return cls(**bounds)

    def holds(self, value: float, ratio: float | None) -> bool | None:
        """Return whether all requirements hold; None if there are none.

        >>> Target(most=1.0, ratio=15).holds(0.5, 12.0)
        False
        """
        kept = [
            *([] if self.most is None else [value <= self.most]),
            *([] if self.least is None else [value >= self.least]),
            *([] if self.ratio is None else [ratio is not None and ratio >= self.ratio]),
        ]
        return all(kept) if kept else None


NOTHING = Target()


def half_of(ratio: float | None = None, cost: float | None = None) -> Target:
    """Return a target of half the measured performance (docs/benchmarks.md), which a tenfold slowdown misses.

    Args:
        ratio: factor by which it is better than its baseline.
        cost: the value, if less is better and there is no baseline.

    >>> half_of(ratio=15).text("s"), half_of(cost=0.5).text("ms")
    ('>= 7.5 x', '<= 1 ms')
    """
    return Target(most=None if cost is None else 2 * cost, ratio=None if ratio is None else ratio / 2)


def figure(
    name: str,
    values: Sequence[float],
    unit: str,
    baseline: Sequence[float] = (),
    more_is_better: bool = False,
    target: Target = NOTHING,
) -> Figure:
    """Return a figure: medians of the runs, and the ratio of the medians."""
    value = float(median(values))
    against = float(median(baseline)) if baseline else None
    ratio = None if against is None else (value / against if more_is_better else against / value)
    return Figure(
        name=name,
        value=value,
        unit=unit,
        min=float(min(values)),
        max=float(max(values)),
        baseline=against,
        ratio=ratio,
        target=target.text(unit),
        holds=target.holds(value, ratio),
    )


def slower(one: Figure, times: float) -> Figure:
    """Return the figure as if ours were slower by a factor; figures other than speeds are unchanged.

    >>> slow = slower(figure("time", [1.0], "s", [30.0], target=half_of(ratio=30)), 10)
    >>> slow.value, slow.ratio, slow.holds
    (10.0, 3.0, False)
    """
    if not (one.unit in TIMES or one.unit.endswith("/s")):
        return one
    by = times if one.unit in TIMES else 1 / times
    ratio = None if one.ratio is None else one.ratio / times
    asked = NOTHING if one.target is None else Target.read(one.target)
    changed = {key: getattr(one, key) * by for key in ("value", "min", "max")}
    return one.model_copy(update=changed | {"ratio": ratio, "holds": asked.holds(changed["value"], ratio)})


def write_figures(path: Path, figures: Sequence[Figure]) -> None:
    """Write the report atomically."""
    storage.write_json(path, [one.model_dump() for one in figures])


def read_figures(path: Path) -> list[Figure]:
    """Read a report, and check it.

    Raises:
        UserError: it is missing, or is not such a report.
    """
    raw = storage.read_json(path)
    try:
        return TypeAdapter(list[Figure]).validate_python(raw)
    except ValidationError as error:
        raise UserError(f"{path}: not a report of the benchmark ({one_line(error)})") from error
