"""Experiments on disagreements with a paper: the same jobsets under the rules and accounting of the published code.

    python docs/results/paper-scale/experiments.py FOLDER

FOLDER holds a finished run at the paper's scale (see ../paper-scale.md). Writes experiments.csv into this folder:
mean slowdown of each policy at each load with its interval, in three ways of counting:

- all: every job, the mean over jobsets of the jobset's mean, as elsewhere in this project;
- started: the mean over jobs that started before arrivals end. The test of hongzimao/deeprm counts this way: it ends an
  episode with the last arrival and leaves out the jobs that still wait;
- floored: the same, each slowdown rounded down, because the test of hongzimao/deeprm divides integers.

Writes counted.csv.gz, too: for each jobset the numbers of jobs and of started jobs, and the sums of slowdown over all
jobs, over started jobs, and over started jobs rounded down. It has the rules and greedy play; jobsets.csv.gz has the
other policies. Writes seen.csv: each agent, Tetris and SJF on the agent's training jobsets and on test jobsets of the
same load, because the published test uses the training jobsets.

It runs the policies that the pipeline did not score: Tetris with other alignment weights, a random choice among all
eleven actions with and without reservations, and the trained networks, greedy and restricted to legal actions.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import interval, resample
from pipeline.core import storage
from pipeline.core.config import Params, PoolCard, load_params
from pipeline.core.types import FloatArray, IntArray, Observation, Policy, keys
from pipeline.problems.pool.agents.networks.networks import restore
from pipeline.problems.pool.env.evaluation.metrics import job_results
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.problems.pool.env.tables import TABLES
from pipeline.problems.pool.heuristics.scores import with_knobs
from pipeline.progress import say
from pipeline.simulation.rollout import heuristic, play, sjf

HERE = Path(__file__).resolve().parent
SCENARIO = "bernoulli"
ARRIVALS_END = 50  # steps
COUNTING = ("all", "started", "floored")

# Weights of the alignment in [0, 1]. The published function has knob * dot product of units + (1 - knob) / duration;
# two resources of 10 units make the dot product 200 times our alignment, so its knob of 0.5 is a weight of 0.995.
TETRIS = {"tetris_0.5": 0.5, "tetris_code_0.5": 0.995}


def random_of_all(view: Observation, draws: FloatArray) -> IntArray:
    """Draw uniformly among all actions, as the published code does; one that cannot be carried out is void."""
    return (draws * (view.duration.shape[1] + 1)).astype(np.int64)


def jobsets_of(params: Params, split: str) -> Mapping[int, Sequence[JobSet]]:
    """Return the jobsets of a split, by load."""
    row = params.pool_scenario(SCENARIO)
    return read_jobsets(storage.jobsets_folder(SCENARIO), split, row.resources, row.known_load)


def played(
    params: Params,
    name: str,
    policy: Policy,
    jobsets: Mapping[int, Sequence[JobSet]],
    masked: bool = True,
    ahead: bool = False,
) -> pd.DataFrame:
    """Return the outcome of every job under a policy."""
    row = params.pool_scenario(SCENARIO)
    load = np.repeat(list(jobsets), [len(group) for group in jobsets.values()])
    number = np.concatenate([np.arange(len(group)) for group in jobsets.values()])
    jobs = batch([jobs for group in jobsets.values() for jobs in group])
    cluster = Cluster.of(row)._replace(place_ahead=ahead)
    simulator = Batched(jobs, cluster, row.step_limit, skip_forced=masked)
    play(simulator, policy, keys(params.seed, load * 1_000_000 + number, np.zeros_like(number)))
    return job_results(name, load, number, jobs, simulator.schedule(), row.step_limit)


def trained(agent: str, greedy: bool) -> Policy:
    """Return a trained agent, unchanged or greedy among its legal actions."""
    model = storage.read_model(storage.model_folder(agent, "policy"), PoolCard)
    changes = {"play": "greedy", "masked": True} if greedy else {}
    return restore(model.card.model_copy(update=changes), model.weights).policy


def online(params: Params) -> list[str]:
    """Return the agents of the scenario with arrivals."""
    return [name for name, agent in params.agents.items() if agent.scenario == SCENARIO]


def tables(params: Params) -> Iterator[pd.DataFrame]:
    """Yield the outcomes of all test jobs, one policy at a time."""
    row, agents, test = params.pool_scenario(SCENARIO), online(params), jobsets_of(params, "test")
    for policy in ("random", "sjf", "packer", "tetris", "hold", *agents, *(f"{name}_pretrained" for name in agents)):
        yield storage.read_job_results(params, SCENARIO, TABLES, [policy], row.loads)
    for name, weight in TETRIS.items():
        yield played(params, name, with_knobs("tetris", weight), test)
    yield played(params, "random_of_all", random_of_all, test, masked=False)
    yield played(params, "random_of_all_ahead", random_of_all, test, masked=False, ahead=True)
    for agent in agents:
        yield played(params, f"{agent}_greedy", trained(agent, greedy=True), test)


def seen(params: Params) -> Iterator[dict[str, object]]:
    """Yield results of each agent and two heuristics on the agent's training jobsets and test jobsets of that load."""
    rules = {
        "sjf": heuristic(sjf),
        "tetris": with_knobs("tetris", storage.read_chosen(SCENARIO).knobs["tetris"]),
    }
    for agent in online(params):
        part, masked = params.agents[agent].finetune, params.pool_recipe(agent).masked
        load, players = part.loads[0], {"sampled": trained(agent, greedy=False), "greedy": trained(agent, greedy=True)}
        for split, count in (("train", part.jobsets), ("test", None)):
            jobsets = {load: jobsets_of(params, split)[load][:count]}
            for name, policy in {**players, **rules}.items():
                table = played(params, name, policy, jobsets, masked=masked or name != "sampled")
                whole = next(row for row in measured(params, counted(table)) if row["counting"] == "all")
                yield {"agent": agent, "split": split, **whole}


def counted(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the counts and sums of each jobset: jobs, started, all, started_sum, floored_sum."""
    # A job starts in the step that its start names; the last step of arrivals is ARRIVALS_END - 1.
    started = (jobs["start"] >= 0) & (jobs["start"] < ARRIVALS_END)
    columns = {
        "jobs": np.ones(len(jobs), dtype=np.int64),
        "started": started.astype(np.int64),
        "all_sum": jobs["slowdown"],
        "started_sum": jobs["slowdown"].where(started, 0.0),
        "floored_sum": np.floor(jobs["slowdown"]).where(started, 0.0),
    }
    keys = [jobs[name] for name in ("policy", "load", "jobset")]
    return pd.DataFrame(columns).groupby(keys).sum().reset_index()


def measured(params: Params, counts_of: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield a row for each load and way of counting. All policies share the resamples of a load."""
    for load, sums in counts_of.groupby("load"):
        late = 1.0 - float(sums["started"].sum() / sums["jobs"].sum())
        ways: dict[str, tuple[FloatArray, FloatArray]] = {
            "all": ((sums["all_sum"] / sums["jobs"]).to_numpy(), np.ones(len(sums))),
            **{way: (sums[f"{way}_sum"].to_numpy(), sums["started"].to_numpy(float)) for way in COUNTING[1:]},
        }
        for way, (total, per) in ways.items():
            rng = np.random.default_rng([params.seed, int(str(load))])
            counts = resample(len(total), params.evaluation.resamples, rng)
            means = counts @ total / (counts @ per)
            low, high = interval(means[1:], params.evaluation.confidence, len(total))
            yield {
                "policy": sums["policy"].iloc[0],
                "load": load,
                "counting": way,
                "n": len(total),
                "slowdown": round(float(means[0]), 4),
                "low": round(float(low), 4),
                "high": round(float(high), 4),
                "left_out": 0.0 if way == "all" else round(late, 4),
            }


def main(folder: str) -> None:
    """Write experiments.csv and seen.csv from a finished run."""
    os.chdir(folder)
    params = load_params()
    rows, parts = list[Mapping[str, object]](), list[pd.DataFrame]()
    for table in tables(params):
        say(str(table["policy"].iloc[0]))
        parts.append(counted(table))
        rows += measured(params, parts[-1])
    pd.DataFrame(rows).to_csv(HERE / "experiments.csv", index=False)
    once: dict[str, object] = {"method": "gzip", "mtime": 0}  # no date in it
    whole, known = pd.concat(parts), {name for agent in online(params) for name in (agent, f"{agent}_pretrained")}
    whole = whole[~whole["policy"].isin(known)]  # in jobsets.csv.gz; the page counts them in one way only
    whole.to_csv(HERE / "counted.csv.gz", index=False, float_format="%.6g", compression=once)
    table = pd.DataFrame(seen(params)).drop(columns=["counting", "left_out"])
    table.to_csv(HERE / "seen.csv", index=False)


if __name__ == "__main__":
    main(sys.argv[1])
