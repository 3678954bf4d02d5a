"""Tables about the content of a log, and their figures: counts, faults, distributions, arrivals and load over time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.plots import GREY, LEARNED, REFERENCE, canvas, panels
from pipeline.core.logs.trace import DAY_S, Trace, fits_somewhere
from pipeline.core.types import THOUSANDTHS, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_USERS = MOST_GAPS = 10
SPANS = 200  # of time
SHARES = 400  # of the jobs, for distributions
COLOUR, OTHER = LEARNED[1], LEARNED[0]
DAYS = "Time since the first arrival (days)"
MOST_ABOVE = 4.0  # times the amount held, up to which a capacity is drawn
SHARE = "Share of jobs with no more (fraction)"


def _schema(name: str, **columns: type) -> pa.DataFrameSchema:
    kinds = {column: pa.Column(kind, nullable=kind is float) for column, kind in columns.items()}
    return pa.DataFrameSchema(kinds, strict=True, ordered=True, name=name)


_SPREAD = dict.fromkeys(("min", "median", "mean", "p90", "p99", "max"), float)
DISTRIBUTIONS = _schema("Distributions", what=str, unit=str, jobs=int, **_SPREAD)
QUARANTINE = _schema("Quarantine", what=str, reason=str, rows=int, share=float, first_line=int)


def overview(trace: Trace) -> pd.DataFrame:
    """Return the numbers of rows, jobs, users and machines; nan = unknown."""
    machines = np.nan if trace.machines is None else float(len(trace.machines.kind))
    homeless = np.nan if trace.machines is None else float((~fits_somewhere(trace)).sum())
    kinds = np.nan if trace.machines is None else float(len(np.unique(trace.machines.kind)))
    users = np.unique(trace.user[trace.user >= 0])
    rows = {
        "rows of the log": float(trace.rows),
        "rows dropped": float(sum(dropped.rows for dropped in trace.dropped)),
        "jobs": float(len(trace.id)),
        "days from first to last arrival": span_s(trace) / DAY_S,
        "users": float(len(users)) if len(users) else np.nan,
        "machines": machines,
        "kinds of machines": kinds,
        "jobs that its machines could not run": homeless,
    }
    return pd.DataFrame({"what": list(rows), "value": list(rows.values())})


def span_s(trace: Trace) -> float:
    """Return the time from the first arrival to the last."""
    return float(trace.submit_s[-1] - trace.submit_s[0])


def load(trace: Trace) -> pd.DataFrame:
    """Return the demand for each resource, averaged over the span, and as a share of the machines' capacity.

    Both are nan if all jobs arrive at once; the share is also nan if the machines are unknown.
    """
    span = span_s(trace) or np.nan
    held = trace.nodes * trace.run_s
    wanted = np.array([float(held @ trace.demand[:, r]) for r in range(len(trace.resources))]) / THOUSANDTHS / span
    capacity = np.full(len(wanted), np.nan)
    if trace.machines is not None:
        capacity = trace.machines.capacity.sum(axis=0) / THOUSANDTHS
    share = wanted / np.where(capacity > 0, capacity, np.nan)
    columns = {"resource": list(trace.resources), "unit": list(trace.units), "wanted": wanted}
    return pd.DataFrame({**columns, "capacity": capacity, "load": share})


def distributions(trace: Trace) -> pd.DataFrame:
    """Return the distributions of times and amounts over jobs; unknown ones have no row."""
    known = trace.wait_s[~np.isnan(trace.wait_s)]
    values: dict[tuple[str, str], FloatArray | IntArray] = {("run time", "s"): trace.run_s}
    if trace.has_estimates:
        values["estimate", "s"] = trace.estimate_s
        values["run time / estimate", "share"] = trace.run_s / trace.estimate_s
    values |= {("gap between arrivals", "s"): np.diff(trace.submit_s), ("wait", "s"): known}
    for r, (resource, unit) in enumerate(zip(trace.resources, trace.units, strict=True)):
        values[f"{resource} on each node", unit] = trace.demand[:, r] / THOUSANDTHS
    values["nodes", "nodes"] = trace.nodes
    rows = []
    for (what, unit), column in values.items():
        if len(column):
            low, middle, p90, p99, high = np.percentile(column, [0, 50, 90, 99, 100]).tolist()
            rows.append((what, unit, len(column), low, middle, float(column.mean()), p90, p99, high))
    return pd.DataFrame(rows, columns=list(DISTRIBUTIONS.columns))


def users(trace: Trace, most: int = MOST_USERS) -> pd.DataFrame:
    """Return the users with the most jobs, and their shares of all jobs; empty if the log has no users."""
    user, jobs = np.unique(trace.user[trace.user >= 0], return_counts=True)
    first = np.argsort(-jobs, kind="stable")[:most]
    frame = pd.DataFrame({"user": user[first], "jobs": jobs[first], "share": jobs[first] / len(trace.id)})
    return frame.astype({"user": "int64", "jobs": "int64"})


def gaps(trace: Trace, most: int = MOST_GAPS) -> pd.DataFrame:
    """Return the longest times without an arrival: begin after the first arrival, length, and next job."""
    gap = np.diff(trace.submit_s)
    first = np.argsort(-gap, kind="stable")[:most]
    since = (trace.submit_s[first] - trace.submit_s[0]) / DAY_S
    return pd.DataFrame({"after_days": since, "gap_s": gap[first], "job": trace.id[first + 1].astype("int64")})


def quarantine(trace: Trace) -> pd.DataFrame:
    """Return the reasons for dropped and repaired rows with their counts, and signs that the log is implausible."""
    counted = [("dropped", *one) for one in trace.dropped] + [("repaired", *one) for one in trace.repaired]
    counted += [("doubtful", doubt, 0, 0) for doubt in trace.doubts]
    rows = [(what, reason, rows, rows / trace.rows, line) for what, reason, rows, line in counted]
    frame = pd.DataFrame(rows, columns=list(QUARANTINE.columns))
    return frame.astype({"what": "str", "reason": "str", "rows": "int64", "share": "float64", "first_line": "int64"})


def over_time(trace: Trace, spans: int = SPANS) -> pd.DataFrame:
    """Return arrivals, and the average amounts held, in equal spans from the first arrival to the last.

    A job holds resources from its start in the log's own history or, if that is unknown, from its arrival.
    """
    submit = trace.submit_s - trace.submit_s[0]
    edges = np.linspace(0.0, span_s(trace) or float(trace.run_s.max()), spans + 1)
    start = submit + np.nan_to_num(trace.wait_s)
    held = {}
    for r, resource in enumerate(trace.resources):
        amount = trace.demand[:, r] * trace.nodes / THOUSANDTHS
        summed = _summed(edges, start, amount) - _summed(edges, start + trace.run_s, amount)
        # The rounded difference can be below 0.
        held[resource] = np.maximum(np.diff(summed), 0) / np.diff(edges)
    arrivals = np.histogram(submit, edges)[0].astype("int64")
    return pd.DataFrame({"begin_days": edges[:-1] / DAY_S, "arrivals": arrivals, **held})


def _summed(edges: FloatArray, since: FloatArray, amount: FloatArray) -> FloatArray:
    """Return the integral over time, up to each edge, of amounts that are held for ever from some time on.

    >>> _summed(np.array([0.0, 10.0, 20.0]), np.array([0.0, 15.0]), np.array([1.0, 2.0]))
    array([ 0., 10., 30.])
    """
    place = np.searchsorted(edges, since)
    held = np.cumsum(np.bincount(place, amount, len(edges) + 1)[:-1])
    moment = np.cumsum(np.bincount(place, amount * since, len(edges) + 1)[:-1])
    return np.asarray(edges * held - moment)


def shares(trace: Trace, steps: int = SHARES) -> pd.DataFrame:
    """Return quantiles of times and amounts over all jobs; estimates are nan if the log has none."""

    def quantiles(column: FloatArray | IntArray) -> FloatArray:
        return np.quantile(column, share, method="inverted_cdf").astype("float64")

    share = np.linspace(0, 1, steps + 1)
    columns: dict[str, FloatArray] = {"share": share, "run_s": quantiles(trace.run_s)}
    columns["estimate_s"] = quantiles(trace.estimate_s) if trace.has_estimates else np.full(len(share), np.nan)
    for r, resource in enumerate(trace.resources):
        columns[resource] = quantiles(trace.demand[:, r]) / THOUSANDTHS
    return pd.DataFrame(columns)


def tables(trace: Trace) -> Mapping[str, tuple[pd.DataFrame, pa.DataFrameSchema]]:
    """Return all tables of a log by name, each with its schema."""
    by_resource = dict.fromkeys(trace.resources, float)
    amounts = {"wanted": float, "capacity": float, "load": float}
    return {
        "overview": (overview(trace), _schema("Overview", what=str, value=float)),
        "load": (load(trace), _schema("Load", resource=str, unit=str, **amounts)),
        "distributions": (distributions(trace), DISTRIBUTIONS),
        "users": (users(trace), _schema("Users", user=int, jobs=int, share=float)),
        "gaps": (gaps(trace), _schema("Gaps", after_days=float, gap_s=float, job=int)),
        "quarantine": (quarantine(trace), QUARANTINE),
        "over_time": (over_time(trace), _schema("OverTime", begin_days=float, arrivals=int, **by_resource)),
        "shares": (shares(trace), _schema("Shares", share=float, run_s=float, estimate_s=float, **by_resource)),
    }


def figures(name: str, frames: Mapping[str, pd.DataFrame]) -> "dict[str, Figure]":
    """Return all figures of a log by name."""
    return {
        "arrivals": _arrivals(frames["over_time"], f"{name}: arrivals"),
        "run_times": _run_times(frames["shares"], f"{name}: run times"),
        "demands": _demands(frames["shares"], frames["load"], name),
        "load": _held(frames["over_time"], frames["load"], name),
    }


def _arrivals(over_time: pd.DataFrame, title: str) -> "Figure":
    """Draw the number of arrivals in each span of a log."""
    figure, axes = canvas(title)
    axes.fill_between(over_time["begin_days"], over_time["arrivals"], step="post", color=COLOUR, lw=0)
    axes.set_xlabel(DAYS)
    axes.set_ylabel(f"Arrivals in each of {len(over_time)} equal spans (jobs)")
    axes.set_ylim(bottom=0)
    return figure


def _run_times(shares: pd.DataFrame, title: str) -> "Figure":
    """Draw the distributions of run times and, if there are any, of estimates."""
    figure, axes = canvas(title)
    _rising(axes, shares, "run_s", COLOUR, "run time")
    if shares["estimate_s"].notna().any():
        _rising(axes, shares, "estimate_s", OTHER, "its user's estimate", "--s")
        axes.legend(loc="lower right")
    axes.set_xscale("log")
    axes.set_xlabel("Time (seconds)")
    axes.set_ylabel(SHARE)
    return figure


def _demands(shares: pd.DataFrame, load: pd.DataFrame, name: str) -> "Figure":
    """Draw the distribution of demands for each resource."""
    figure, every = panels([f"{name}: {resource} of jobs" for resource in load["resource"]], 3.2 * len(load))
    for axes, (_, row) in zip(every, load.iterrows(), strict=True):
        _rising(axes, shares, str(row["resource"]), COLOUR, str(row["resource"]))
        amount = shares[row["resource"]]
        if (amount > 0).all():
            axes.set_xscale("log")
        elif (amount > 0).any():  # logarithmic from the least amount on, with room for demands of 0
            axes.set_xscale("symlog", linthresh=float(amount[amount > 0].min()))
            axes.set_xlim(left=0)
        axes.set_xlabel(f"Demand on each node ({row['unit']})")
        axes.set_ylabel(SHARE)
    return figure


def _held(over_time: pd.DataFrame, load: pd.DataFrame, name: str) -> "Figure":
    """Draw how much of each resource is held over time, and its capacity."""
    figure, every = panels([f"{name}: {resource} held" for resource in load["resource"]], 3.2 * len(load))
    for axes, (_, row) in zip(every, load.iterrows(), strict=True):
        axes.step(over_time["begin_days"], over_time[row["resource"]], where="post", color=COLOUR, linewidth=1)
        unit, capacity = str(row["unit"]), float(row["capacity"])
        if capacity <= MOST_ABOVE * over_time[row["resource"]].max():  # a line far above would press the rest flat
            axes.axhline(capacity, color=GREY, lw=1, ls="--", label="capacity of all machines", gid=REFERENCE)
            axes.legend(loc="best")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(DAYS)
        axes.set_ylabel(f"Held ({unit})" if np.isnan(capacity) else f"Held ({unit}; capacity: {capacity:,.0f})")
    return figure


def _rising(axes: "Axes", shares: pd.DataFrame, column: str, colour: str, name: str, style: str = "-o") -> None:
    axes.plot(shares[column], shares["share"], style, ds="steps-post", color=colour, lw=1.6, label=name, markevery=0.1)
