"""Value of predicted run times on a real log: its last 40 %, scheduled as one run on an empty machine.

    PYTHONPATH=. python docs/results/run-times/measure.py test ../shared/traces/HPC2N-2002-2.2-cln.first15000.swf.gz
    PYTHONPATH=. python docs/results/run-times/measure.py choose ../shared/traces/HPC2N-2002-2.2-cln.first15000.swf.gz
    PYTHONPATH=. python docs/results/run-times/measure.py replays test|kth|curie LOG
    PYTHONPATH=. python docs/results/run-times/measure.py learned LOG WEIGHTS

`choose` is for choosing settings: it trains on the first 30 % and tests on the next 30 %. `test` trains on the first 60
% and tests on the rest. Both write results by blocks of three days of submission into this folder. `replays` plays the
test period of a log twelve times, with every submission moved by up to a minute, under orders without look-ahead; `kth`
and `curie` are unseen logs. `learned` runs the test period under the agents of params.yaml, read by name from the
folder WEIGHTS, each with the run times that it was trained with.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import gap_interval, resample
from pipeline.core import storage
from pipeline.core.config import MachinesCard
from pipeline.core.logs.predictions import (
    FEATURES,
    SubmittedJobs,
    boosted,
    features,
    predict_run_times,
    submitted_jobs,
    within,
)
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import Trace
from pipeline.core.types import ANY_KIND, SHORTEST_BOUNDED, CompiledRule, FloatArray, KeyArray, Policy
from pipeline.lookahead.planner import Base, Planner
from pipeline.problems.machines.agents.networks.loading import restore
from pipeline.problems.machines.env.evaluation.play import play_on
from pipeline.problems.machines.env.nouns import DISPATCH, Jobs, Machines, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.heuristics.rules import HEURISTICS, with_age
from pipeline.problems.machines.lookahead.futures import arrival_model
from pipeline.problems.machines.lookahead.plans import USUAL
from pipeline.problems.machines.lookahead.search import MachinesSearch
from pipeline.progress import say
from pipeline.simulation.rollout import Insider

HERE = Path(__file__).resolve().parent
# Ends of training and of test, as shares of the log.
SPANS = {"choose": (0.3, 0.6), **dict.fromkeys(("test", "kth", "curie"), (0.6, 1.0))}
REPLAYS, MOVED_S, REPLAYED = 12, 60.0, ("EASY", "SAF", "F1", "SJF")
BLOCK_S = 3 * 86_400.0
HOUR_S = 3600.0
SLOTS = 2048  # more than the longest queue
AGES_H = (1, 4, 16, 64)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of quantiles
# A tenth of the default, because event-driven dispatch repeats each decision at the next event.
BUDGET = USUAL._replace(candidates=10, futures=32, decisions=20_000)
RESAMPLES, CONFIDENCE, SEED = 4000, 0.95, 1


def last_two(jobs: SubmittedJobs[FloatArray], known: FloatArray) -> FloatArray:
    """Return the mean run time of the user's last two jobs that had ended, limited by the estimate [J].

    If none had ended it is the estimate (Tsafrir, Etsion and Feitelson 2007).
    """
    place = FEATURES.index("last_0")
    last, before = known[:, place], known[:, place + 1]
    mean = np.where(np.isnan(before), last, (last + before) / 2)
    return np.fmin(mean, jobs.estimate)


def orders() -> dict[str, tuple[Policy, str]]:
    """Return policies and their dispatch of jobs that do not fit, by name."""
    found = {
        "EASY": (HEURISTICS["fcfs"], "easy_dynamic"),
        "EASY, shortest first": (HEURISTICS["fcfs"], "easy_shortest"),
    }
    found |= {name.upper(): (HEURISTICS[name], "easy_dynamic") for name in ("saf", "f1", "sjf")}
    return found | {f"SAF aged {hours} h": (with_age(hours * HOUR_S), "easy_dynamic") for hours in AGES_H}


def planners() -> dict[str, CompiledRule]:
    """Return the rules that look ahead, by name; all use `easy_dynamic`."""
    return {f"{name.upper()}, looking ahead": CompiledRule(name) for name in ("saf", "f1")}


def known_by(trace: Trace, learned: int, known: FloatArray) -> dict[str, FloatArray]:
    """Return the run times that policies may know [J], by name."""
    places = np.arange(learned)
    return {
        "estimates": trace.estimate_s,
        "last two": within(trace, last_two(submitted_jobs(trace), known)),
        "predictions": predict_run_times(trace, places, known),
        "run times": trace.run_s,
    }


def past(trace: Trace, learned: int, known: FloatArray, what: dict[str, FloatArray]) -> dict[str, Jobs]:
    """Return the past jobs that look-ahead draws from, by the kind of known run times.

    Predictions are of the second half of the training span, from its first half, as for the tables of the page.
    Newer code in the package does this itself.
    """
    half = learned // 2
    earlier = predict_run_times(trace, np.arange(half), known)
    whole = {words: jobs_of(trace, slice(0, learned), what[words]) for words in ("estimates", "run times")}
    return {"estimates": whole["estimates"], "predictions": jobs_of(trace, slice(half, learned), earlier), **whole}


def errors(trace: Trace, span: slice, what: dict[str, FloatArray]) -> pd.DataFrame:
    """Return the errors of known run times."""
    run, rows = trace.run_s[span], []
    for name, column in what.items():
        off, ratio = np.abs(column[span] - run), np.log(np.maximum(column[span], 1.0) / run)
        numbers = {
            "covered": (run <= column[span]).mean(),
            "mean_error_s": off.mean(),
            "median_error_s": np.median(off),
        }
        rows.append({"told": name, "jobs": len(run), **numbers, "log_error": np.sqrt((ratio**2).mean())})
    return pd.DataFrame(rows)


def jobs_of(trace: Trace, span: slice, what: FloatArray) -> Jobs:
    """Return the jobs of a span with their known run times."""
    count = len(trace.run_s[span])
    return Jobs(
        *(trace.submit_s[span], trace.run_s[span], what[span], trace.demand[span, :1].copy()),
        *(np.ones(count, dtype=np.int64), np.full(count, ANY_KIND)),
    )


def waits(
    trace: Trace, span: slice, what: FloatArray, policy: Policy | Insider, dispatch: str, slots: int = SLOTS
) -> FloatArray:
    """Return how long each job of a span waits."""
    return _waits(trace, jobs_of(trace, span, what), policy, dispatch, slots)


def _waits(trace: Trace, jobs: Jobs, policy: Policy | Insider, dispatch: str, slots: int = SLOTS) -> FloatArray:
    if trace.machines is None:
        raise ValueError("the log has no machine size: expected MaxProcs or MaxNodes in its header")
    machines = Machines(
        trace.machines.capacity[:, :1], np.zeros(1, dtype=np.int64), slots, DISPATCH.index(dispatch), np.inf, np.inf
    )
    simulator, key = Simulator(end_to_end([jobs]), machines, np.zeros(len(jobs.arrival))), np.zeros(1, dtype=np.uint64)
    _to_end(simulator, policy, key)
    return np.asarray(simulator.placed().start - jobs.arrival)


def _to_end(simulator: Simulator, policy: Policy | Insider, key: KeyArray) -> None:
    for _ in play_on(simulator, policy, key):
        pass


def play(name: str, trace: Trace) -> None:
    """Train, test and write the tables."""
    learned, end = (round(len(trace.id) * share) for share in SPANS[name])
    span, known = slice(learned, end), features(submitted_jobs(trace))
    what = known_by(trace, learned, known)
    if name == "choose":
        log, every = np.log(trace.run_s), np.arange(learned)
        quantiles = [boosted(trace, every, known, log, loss="quantile", quantile=share) for share in SHARES]
        found = within(trace, np.sort(np.exp(quantiles), axis=0))
        table = errors(trace, span, what | {f"quantile {share:g}": found[q] for q, share in enumerate(SHARES)})
        table.round(4).to_csv(HERE / "choose_predictions.csv", index=False)
    block = ((trace.submit_s[span] - trace.submit_s[learned]) // BLOCK_S).astype(np.int64)
    waited = {}
    for order, (policy, dispatch) in orders().items():
        for words, column in what.items():
            waited[order, words] = waits(trace, span, column, policy, dispatch)
            say(f"{order} with {words}: mean wait {waited[order, words].mean():,.0f} s")
    before = past(trace, learned, known, what)
    for order, rule in planners().items():
        for words, shown in before.items():
            plan = Planner(MachinesSearch(Base(HEURISTICS[rule.rule], rule), arrival_model([shown]), BUDGET))
            waited[order, words] = waits(trace, span, what[words], plan, "easy_dynamic")
            say(f"{order} with {words}: mean wait {waited[order, words].mean():,.0f} s")
    by_block(waited, trace.run_s[span], block).round(3).to_csv(HERE / f"{name}_blocks.csv", index=False)


def replays(name: str, trace: Trace) -> None:
    """Replay the test period with moved submissions, and write the tables."""
    learned, end = (round(len(trace.id) * share) for share in SPANS[name])
    span, known = slice(learned, end), features(submitted_jobs(trace))
    what = known_by(trace, learned, known)
    errors(trace, span, what).round(4).to_csv(HERE / f"{name}_predictions.csv", index=False)
    run, submit = trace.run_s[span], trace.submit_s[span]
    block = ((submit - submit[0]) // BLOCK_S).astype(np.int64)
    moves = np.random.default_rng(SEED).uniform(-MOVED_S, MOVED_S, (REPLAYS, len(run)))
    parts, waited = [], {}
    for (order, (policy, dispatch)), (words, column) in product(orders().items(), what.items()):
        if order not in REPLAYED:
            continue
        waited[order, words] = np.array([_moved(trace, span, column, policy, dispatch, move) for move in moves])
        say(f"{order} with {words}: mean wait {waited[order, words].mean():,.0f} s")
        parts += [
            by_block({(order, words): wait}, run, block).assign(replay=e) for e, wait in enumerate(waited[order, words])
        ]
    pd.concat(parts).round(3).to_csv(HERE / f"{name}_replays.csv.gz", index=False)
    _summary(waited, run, block).round(4).to_csv(HERE / f"{name}_schedules.csv", index=False)


def _moved(trace: Trace, span: slice, what: FloatArray, policy: Policy, dispatch: str, move: FloatArray) -> FloatArray:
    """Return how long each job of a span waits [J] if its submission is moved [J]."""
    jobs = jobs_of(trace, span, what)
    submit = jobs.arrival + move
    order, wait = np.argsort(submit, kind="stable"), np.empty(len(submit))
    moved = Jobs._make(column[order] for column in jobs._replace(arrival=submit))
    wait[order] = _waits(trace, moved, policy, dispatch)
    return wait


def _summary(waited: dict[tuple[str, str], FloatArray], run: FloatArray, block: FloatArray) -> pd.DataFrame:
    """Return means over replays [E, J]; 99th percentiles are compared over resampled blocks and replays."""
    blocks = resample(int(block.max()) + 1, RESAMPLES, np.random.default_rng(SEED)).astype(np.int64)
    chosen = resample(REPLAYS, RESAMPLES, np.random.default_rng(SEED + 1)) / REPLAYS
    tails = {
        cell: (chosen * np.transpose([_tails(wait, block, blocks) for wait in waits])).sum(axis=1)
        for cell, waits in waited.items()
    }
    rows = []
    for (order, words), wait in waited.items():
        bounded, gap = slowdown(wait, run).mean(axis=1), tails[order, words] / tails["EASY", "estimates"] - 1
        low, high = gap_interval(gap[1:], CONFIDENCE, blocks.shape[1])
        rows.append(
            {
                **{"order": order, "told": words, "jobs": len(run), "bounded_slowdown": bounded.mean()},
                **{"bounded_slowdown_sd": bounded.std(ddof=1), "wait_s": wait.mean()},
                **{"p99_wait_s": tails[order, words][0], "longest_wait_s": wait.max(axis=1).mean()},
                **{"p99_wait_difference": gap[0], "p99_wait_low": float(low), "p99_wait_high": float(high)},
            }
        )
    return pd.DataFrame(rows)


def slowdown(wait: FloatArray, run: FloatArray) -> FloatArray:
    """Return bounded slowdowns."""
    return np.asarray(np.maximum(1.0, (wait + run) / np.maximum(run, SHORTEST_BOUNDED)))


def schedules(waited: dict[tuple[str, str], FloatArray], run: FloatArray, block: FloatArray) -> pd.DataFrame:
    """Return results of each schedule; the 99th percentile of wait is compared with EASY's over resampled blocks."""
    counts = resample(int(block.max()) + 1, RESAMPLES, np.random.default_rng(SEED)).astype(np.int64)
    tails = {cell: _tails(wait, block, counts) for cell, wait in waited.items()}
    easy, rows = tails["EASY", "estimates"], []
    for (order, words), wait in waited.items():
        bounded, gap = slowdown(wait, run), tails[order, words] / easy - 1
        low, high = gap_interval(gap[1:], CONFIDENCE, counts.shape[1])
        rows.append(
            {
                **{"order": order, "told": words, "jobs": len(wait), "bounded_slowdown": bounded.mean()},
                **{"p99_bounded_slowdown": np.quantile(bounded, 0.99), "wait_s": wait.mean()},
                **{"p99_wait_s": np.quantile(wait, 0.99), "longest_wait_s": wait.max()},
                **{"p99_wait_difference": gap[0], "p99_wait_low": float(low), "p99_wait_high": float(high)},
            }
        )
    return pd.DataFrame(rows)


def _tails(wait: FloatArray, block: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the 99th percentile of wait for given counts of each block [S]."""
    order = np.argsort(wait)
    weights = counts[:, block[order]].cumsum(axis=1)
    place = (weights < 0.99 * weights[:, -1:]).sum(axis=1)
    return np.asarray(wait[order][place])


def by_block(waited: dict[tuple[str, str], FloatArray], run: FloatArray, block: FloatArray) -> pd.DataFrame:
    """Return the sums of bounded slowdown and wait over the jobs that were submitted in each block."""
    parts = []
    for (order, words), wait in waited.items():
        frame = pd.DataFrame({"block": block, "bounded_slowdown": slowdown(wait, run), "wait_s": wait})
        sums = frame.groupby("block").sum().assign(jobs=np.bincount(block)[np.unique(block)]).reset_index()
        sums.insert(0, "told", words)
        sums.insert(0, "order", order)
        parts.append(sums)
    return pd.concat(parts, ignore_index=True)


def learned(trace: Trace, weights: Path) -> None:
    """Run the test period under the trained agents, and write the tables."""
    begin = round(len(trace.id) * SPANS["test"][0])
    span, known, waited = slice(begin, None), features(submitted_jobs(trace)), {}
    what = known_by(trace, begin, known)
    block = ((trace.submit_s[span] - trace.submit_s[begin]) // BLOCK_S).astype(np.int64)
    easy = ("EASY", "estimates")
    waited[easy] = waits(trace, span, what["estimates"], *orders()["EASY"])
    for folder in sorted(weights.iterdir()):
        model = storage.read_model(folder, MachinesCard)
        words, seed = folder.name.replace("_", " ").rsplit(" ", 1)
        policy = restore(model.card, model.weights).policy
        waited[f"learned, seed {seed}", words] = waits(
            trace, span, what[words], policy, model.card.dispatch, model.card.slots
        )
        say(f"{folder.name}: {slowdown(waited[f'learned, seed {seed}', words], trace.run_s[span]).mean():.2f}")
    schedules(waited, trace.run_s[span], block).round(4).to_csv(HERE / "learned_schedules.csv", index=False)
    by_block(waited, trace.run_s[span], block).round(3).to_csv(HERE / "learned_blocks.csv", index=False)


if __name__ == "__main__":
    if sys.argv[1] == "learned":
        learned(read(Path(sys.argv[2]), "swf"), Path(sys.argv[3]))
    elif sys.argv[1] == "replays":
        replays(sys.argv[2], read(Path(sys.argv[3]), "swf"))
    else:
        play(sys.argv[1], read(Path(sys.argv[2]), "swf"))
