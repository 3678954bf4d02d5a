"""Comparisons on a pooled cluster in addition to slowdown: streams, and the distance to hindsight."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.comparing import words
from pipeline.comparing.comparing import overload_metrics
from pipeline.comparing.hindsight import hindsight_markdown, hindsight_table
from pipeline.comparing.kept import KEPT, picture
from pipeline.comparing.plots import Label, counted, leading, line, looks, panels, write_names
from pipeline.comparing.resampling import by_jobset, interval, resample
from pipeline.core import storage
from pipeline.core.config import Evaluation, Params, Streaming, Synthetic
from pipeline.core.schemas import HINDSIGHT_SUMMARY, KEYS, STREAM_SUMMARY, empty
from pipeline.core.schemas.tables import HINDSIGHT, LENGTHS
from pipeline.core.storage import Chosen
from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.parts import Comparison, Evidence, Tested, Validated, validation_label
from pipeline.problems.pool.env.storage import stored_jobs
from pipeline.problems.pool.env.tables import TABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def stream_summary(
    jobsets: pd.DataFrame,
    backlogs: pd.DataFrame,
    classes: pd.DataFrame,
    scenario: str,
    settings: Evaluation,
    rng: np.random.Generator,
    overload: bool = False,
) -> pd.DataFrame:
    """Return every metric of each policy of one stream, at each load; no rows for other scenarios.

    Intervals are percentiles of a bootstrap over jobsets, which are independent replications. With the same seed, the
    interval of slowdown equals that of `statistics.summary`.

    Args:
        jobsets: jobset results of the scenario, with the same jobsets for all policies.
        backlogs: rows of STREAM_BACKLOG.
        classes: rows of STREAM_FAIRNESS.
        scenario: name of the scenario.
        settings: settings of the bootstrap.
        rng: random numbers of the bootstrap.
        overload: do arrivals end with the measured steps?
    """
    if backlogs.empty:
        return empty(STREAM_SUMMARY)
    policies = list(jobsets["policy"].unique())
    backlog, tables = backlogs.drop_duplicates(KEYS), []
    for load, part in jobsets.groupby("load"):
        counts = resample(part["jobset"].nunique(), settings.resamples, rng)
        means: dict[str, FloatArray] = {}
        for name, rows, column in (
            ("slowdown", part, "mean_slowdown"),
            ("p99_slowdown", part, "p99_slowdown"),
            ("mean_longest_wait", part, "longest_wait"),
            ("growth", backlog[backlog["load"] == load], "growth"),
            ("finished", backlog[backlog["load"] == load], "finished"),
        ):
            value = by_jobset(rows, policies, column).to_numpy()
            resampled = np.asarray(counts @ value / len(value))
            low, high = interval(resampled[1:], settings.confidence, len(value))
            means |= {name: resampled[0], f"{name}_low": low, f"{name}_high": high}
        others = _without_interval(part, classes[classes["load"] == load], policies)
        about = {"scenario": scenario, "load": load, "policy": policies, "overload": overload}
        tables.append(pd.DataFrame(about | means | others))
    return pd.concat(tables, ignore_index=True)[list(STREAM_SUMMARY.columns)]


def _without_interval(
    part: pd.DataFrame, classes: pd.DataFrame, policies: list[str]
) -> dict[str, FloatArray | IntArray]:
    """Return the metrics without intervals of each policy at one load."""
    scored = part.groupby("policy")
    totals = scored[["jobs", "unfinished"]].sum().loc[policies]
    slowdown = classes.pivot(index="policy", columns="length", values="mean_slowdown")
    slowdown = slowdown.reindex(index=policies, columns=range(1, LENGTHS + 1))
    return {
        "n": scored.size().loc[policies].to_numpy(),
        "jobs": totals["jobs"].to_numpy(),
        "worst_slowdown": scored["worst_slowdown"].max().loc[policies].to_numpy(),
        "longest_wait": scored["longest_wait"].max().loc[policies].to_numpy(),
        "utilisation": scored["utilisation"].mean().loc[policies].to_numpy(),
        **{f"slowdown_length_{length}": slowdown[length].to_numpy() for length in slowdown.columns},
        "never_started": totals["unfinished"].to_numpy(),
    }


PANEL = 2.4  # inches
NAME_GAP = 0.11  # of a panel's height: a line of text


def backlog_growth(frame: pd.DataFrame, title: str, learned: Collection[str], measured: tuple[int, int]) -> "Figure":
    """Draw the waiting jobs over the steps of a stream: one panel per load, one line per policy, means over jobsets.

    Each panel has its own axes, because a growing backlog is far longer than a stable one.
    """
    loads = sorted(frame["load"].unique())
    figure, every = panels([f"Load {load} %" for load in loads], 1.0 + PANEL * len(loads))
    means = frame.groupby(["load", "policy", "step"])["waiting"].mean()
    drawn = looks(leading(frame, "waiting", learned), learned)
    for axes, load in zip(every, loads, strict=True):
        axes.axvspan(*measured, color="#F2F2F2", zorder=0)
        labels = []
        for policy, look in drawn.items():
            waiting = means.loc[load, policy]
            line(axes, policy, waiting.index, waiting, look)
            labels.append(Label(policy, waiting.index[-1], waiting.iloc[-1], look))
        axes.set_ylim(bottom=0)
        axes.set_ylabel("Waiting (jobs)")
        write_names(axes, labels, NAME_GAP)
    every[-1].set_xlabel("Time (steps; shaded: measured)")
    figure.suptitle(counted(title, frame, drawn), x=0.01, ha="left")
    return figure


def evidence(params: Params, scenarios: Sequence[str]) -> Evidence:
    """Return the evidence on streams, and the share of the distance to hindsight that each policy closes."""
    measured = {name: span for name in scenarios if (span := params.pool_scenario(name).measured) is not None}
    figures = {}
    for name, span in measured.items():
        backlog, title = storage.read_also(params, name, TABLES, "backlog"), f"Jobs waiting, scenario {name}"
        figures[f"backlog_{name}"] = picture(KEPT, backlog_growth, backlog, title, list(params.agents_of(name)), span)
    found = [_stream(params, name) for name in measured]
    streams = pd.concat(found, ignore_index=True) if found else empty(STREAM_SUMMARY)
    closed = []
    for name in params.hindsight.scenarios:
        solved = storage.read_table(storage.results_folder("hindsight", name) / "hindsight.parquet", HINDSIGHT)
        results, best = storage.read_jobset_results(params, name, TABLES), storage.read_chosen(name).best
        closed.append(hindsight_table(name, results, solved, best, params.evaluation, params.seed))
    foreseen = pd.concat(closed, ignore_index=True) if closed else empty(HINDSIGHT_SUMMARY)
    said = words.closing(foreseen, params.agents, params.evaluation.confidence)
    return Evidence(
        tables={"stream_summary.csv": (streams, STREAM_SUMMARY), "hindsight.csv": (foreseen, HINDSIGHT_SUMMARY)},
        figures=figures,
        sections=[words.stream_tables(streams), *said, hindsight_markdown(foreseen)],
        findings=said,
        overloads={
            str(name): overload_metrics(rows, params.judged)
            for name, rows in streams[streams["overload"]].groupby("scenario")
        },
    )


def validated(params: Params, agent: str, chosen: Chosen) -> Validated:
    """Return the reference levels and the axis label of an agent's learning curve."""
    row = params.agents[agent]
    if row.finetune.name == "evolution":
        return Validated({}, "Validation slowdown relative to sjf_align (ratio)")
    levels = chosen.over(row.finetune.loads) if row.objective == "slowdown" else {}
    return Validated(levels, validation_label(row.objective, "steps"))


def _stream(params: Params, name: str) -> pd.DataFrame:
    backlog, classes = (storage.read_also(params, name, TABLES, table) for table in ("backlog", "fairness"))
    results, rng = storage.read_jobset_results(params, name, TABLES), np.random.default_rng(params.seed)
    overload = params.pool_scenario(name).overload
    return stream_summary(results, backlog, classes, name, params.evaluation, rng, overload)


def tested(params: Params, scenario: str) -> Tested:
    """Return a scenario's test jobsets; a log has one load."""
    row = params.pool_scenario(scenario)
    jobs = stored_jobs(storage.jobsets_folder(scenario) / "test.parquet", row.resources)
    if isinstance(row.arrivals, Streaming) and isinstance(params.workload_of(row), Synthetic):
        return Tested(jobs, row.resources, row.arrivals.steps)
    return Tested(jobs, row.resources)


COMPARISON = Comparison(evidence, validated, tested, ("random",))
