"""Run heuristics and three trained agents on problems that differ from `online` in one respect.

    PYTHONPATH=. python docs/results/deeprm3/measure.py WEIGHTS_FOLDER [PROBLEM ...]

WEIGHTS_FOLDER has a folder for each stored model (`train.py`). For every problem, heuristics are tuned and the best at
each load is chosen on its validation jobsets. All policies run the same test jobsets, drawn from a seed of this page;
networks are not changed. Writes <problem>.csv.gz to this folder, one row a load, policy and jobset, and the best
heuristics to best.csv. Where the load is unknown, one heuristic is chosen for all loads.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pipeline.core import storage
from pipeline.core.config import Counts, Params, PoolCard, PoolLog, PoolScenario, Streaming, load_params
from pipeline.core.types import Policy
from pipeline.problems.pool.agents.networks.networks import Loaded, restore
from pipeline.problems.pool.env.evaluation.metrics import span_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.env.workload.source import source
from pipeline.problems.pool.heuristics.scores import heuristics_with, tuned
from pipeline.progress import say
from pipeline.simulation.results import Results

HERE = Path(__file__).resolve().parent
SEED = 20_261_125  # of these test jobsets only
NOISE = 0.5  # standard deviation of the logarithm of estimates
HPC2N = "../shared/traces/HPC2N-2002-2.2-cln.first15000.swf.gz"  # from the project's root
SHOWN = ("sjf", "hold_long", "easy", "linear")  # in addition to the networks and the best heuristic of each load
LOADS, FEW = (10, 30, 50, 70, 90, 110, 130, 150, 170, 190), (30, 70, 110, 150, 190)
COLUMNS = ["policy", "load", "jobset", "unfinished", "mean_slowdown"]
TAILS = ["p99", "longest_wait"]  # of streams


@dataclass(frozen=True)
class Problem:
    """Problem to measure: parameters, whose scenario `online` is used, and loads."""

    name: str
    params: Params
    loads: Sequence[int]

    @property
    def scenario(self) -> PoolScenario:
        """Return the cluster, and how jobs arrive."""
        return self.params.pool_scenario("online")

    def jobsets(self, split: str) -> dict[int, list[JobSet]]:
        """Return the jobsets of a split, by load; test jobsets are drawn from this page's own seed."""
        params = self.params.model_copy(update={"seed": SEED}) if split == "test" else self.params
        workload = params.workload
        found = source(params, "online", Path(workload.path) if isinstance(workload, PoolLog) else storage.LOG)
        return found.split(split)


def play(problem: Problem, jobsets: Mapping[int, Sequence[JobSet]], who: Policy) -> Results:
    """Return a policy's results on every jobset; one load at a time, to limit memory."""
    row, tables = problem.scenario, []
    for load, group in jobsets.items():
        some = {load: group}
        done = score({"": who}, some, Cluster.of(row), row.step_limit, SEED, measured=span_of(row))[""]
        tables.append(done.jobsets.rename(columns={"p99_slowdown": "p99"}))
    table = pd.concat(tables, ignore_index=True)
    return Results(table, table)


def heuristics(problem: Problem) -> tuple[dict[str, Policy], dict[int, str]]:
    """Return heuristics tuned on validation jobsets, and the best of them at each load."""
    validation, row = problem.jobsets("validation"), problem.scenario

    def examine(policies: Mapping[str, Policy]) -> dict[str, Results]:
        return score(policies, validation, Cluster.of(row), row.step_limit, SEED, measured=span_of(row))

    training = {0: [jobs for group in validation.values() for jobs in group]}
    knobs = tuned(examine, problem.params.heuristics.pool, training)
    policies = {name: policy for name, policy in heuristics_with(knobs).items() if name != "random"}
    means = {name: done.by_load for name, done in examine(policies).items()}
    if not row.tell_load:
        single = min(means, key=lambda name: sum(means[name].values()))
        return policies, dict.fromkeys(validation, single)
    return policies, {load: min(means, key=lambda name: means[name][load]) for load in validation}


def networks(folder: Path) -> dict[str, Loaded]:
    """Return the stored networks of a folder, by name."""
    found = {}
    for place in sorted(path for path in folder.iterdir() if (path / "policy.safetensors").exists()):
        model = storage.read_model(place, PoolCard)
        found[place.name] = restore(model.card, model.weights)
    return found


def run(problem: Problem, folder: Path) -> None:
    """Measure one problem, and write the result of every jobset."""
    rules, best = heuristics(problem)
    named = {name: rules[name] for name in sorted({*SHOWN, *best.values()})}
    learned = {name: it.policy for name, it in networks(folder).items()}
    test, tables = problem.jobsets("test"), []
    for name, who in {**named, **learned}.items():
        tables.append(play(problem, test, who).jobsets.assign(policy=name))
    columns = [*COLUMNS, *(TAILS if problem.name.startswith("streams") else [])]
    table = pd.concat(tables, ignore_index=True)[columns].round({"mean_slowdown": 4, "p99": 2})
    table.to_csv(HERE / f"{problem.name}.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
    keep(problem.name, best)
    means = table.groupby(["policy", "load"])["mean_slowdown"].mean().unstack().round(3)
    say(f"{problem.name}: best {best}, {int(table['unfinished'].sum())} unfinished\n{means.to_string()}")


def keep(name: str, best: Mapping[int, str]) -> None:
    """Replace the best heuristics of a problem in best.csv."""
    path, own = HERE / "best.csv", pd.DataFrame({"problem": name, "load": list(best), "heuristic": list(best.values())})
    before = pd.read_csv(path).query("problem != @name") if path.exists() else own[:0]
    pd.concat([before, own]).sort_values(["problem", "load"]).to_csv(path, index=False)


def problems(params: Params) -> dict[str, Problem]:
    """Return all problems by name."""

    def short(name: str, base: Params, loads: Sequence[int] = FEW, **changed: object) -> Problem:
        return Problem(name, _with(base, loads, (40, 300), **changed), loads)

    def streams(name: str, slots: int) -> Problem:
        row = params.pool_scenario("streams")
        own = {"slots": slots, "arrivals": row.arrivals, "step_limit": row.step_limit}
        return Problem(name, _with(light, row.loads, (10, 60), **own), row.loads)

    knobs = params.heuristics.pool
    longer = knobs.model_copy(update={"linear": knobs.linear.model_copy(update={"rounds": 8})})
    light = params.model_copy(update={"heuristics": params.heuristics.model_copy(update={"pool": longer})})
    shares = _drawn(light, short=(1, 5), long=(8, 20), short_share=0.6)
    shorter = _drawn(light, short=(1, 2), long=(5, 8), short_share=0.7)
    noisy = _drawn(light, estimate_noise=NOISE)
    log = light.model_copy(update={"workload": PoolLog(name="swf", path=HPC2N)})
    units = {units: {"cpu": units, "memory": units} for units in (20, 40)}
    found = [
        short("short", params, LOADS),
        short("short_unknown", params, LOADS, tell_load=False),
        streams("streams", 60),
        streams("streams_10", 10),
        *(short(f"slots_{slots}", light, slots=slots) for slots in (5, 20, 60, 128)),
        *(short(f"capacity_{size}", light, resources=both) for size, both in units.items()),
        short("three", light, resources={"cpu": 20, "memory": 20, "gpu": 20}),
        short("text", light, resources=units[20], demand="text"),
        short("horizon_40", light, horizon=40),
        short("mix_flat", shares, horizon=20),
        short("mix_short", shorter),
        short("bernoulli", light, arrivals=Streaming(name="bernoulli", steps=50)),
        short("bursts", light, arrivals=Streaming(name="bursts", steps=50, size=5.0)),
        short("estimates", noisy, policies_know="estimates"),
        *(short(f"hpc2n_{known}", log, policies_know=known) for known in ("durations", "estimates")),
    ]
    return {problem.name: problem for problem in found}


def _with(params: Params, loads: Sequence[int], count: tuple[int, int], **changed: object) -> Params:
    own = {"loads": list(loads), "jobsets": Counts(train=1, validation=count[0], test=count[1])}
    row = params.scenarios["online"].model_copy(update={**own, **changed})
    return params.model_copy(update={"scenarios": {**params.scenarios, "online": row}})


def _drawn(params: Params, **changed: object) -> Params:
    return params.model_copy(update={"workload": params.workload.model_copy(update=changed)})


if __name__ == "__main__":
    known = problems(load_params())
    for name in sys.argv[2:] or known:
        if isinstance(known[name].params.workload, PoolLog) and not Path(HPC2N).exists():
            say(f"{name}: skipped: {HPC2N} not found")
            continue
        run(known[name], Path(sys.argv[1]))
