"""Play heuristics and stored networks on problems that differ from `online` in one thing, and compare them.

    python docs/results/deeprm3/measure.py WEIGHTS_FOLDER OUT_FOLDER [PROBLEM ...]

WEIGHTS_FOLDER has stored networks, one folder each; those on images play `short` and `streams_10` only. For every
problem heuristics are tuned on its validation jobsets, the best of them at each load is chosen there, and all play the
same test jobsets; networks are played as they are. Writes OUT_FOLDER/<problem>.csv: one row a load, policy and
reference.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.comparing.statistics import comparison
from pipeline.config import Params, PoolLog, PoolScenario, Streaming, load_params
from pipeline.core import CompiledRule, keys
from pipeline.problems.pool.heuristics.tuning import heuristics_with, tuned
from pipeline.problems.pool.networks.loading import restore
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.simulator.outcomes import outcome
from pipeline.problems.pool.training.rolling import NEVER, Roller
from pipeline.problems.pool.workload.source import source
from pipeline.progress import say
from pipeline.simulation.choosing import compiled_rule_of
from pipeline.simulation.results import Results
from pipeline.simulation.rollout import play as play_plainly

ABREAST = 2_000_000  # jobs played side by side
VALIDATION, TEST = 40, 300
NOISE = 0.5  # of the logarithm of estimates
HPC2N = "../shared/traces/HPC2N-2002-2.2-cln.first15000.swf.gz"  # from the project's root
REFERENCES = ("sjf", "hold", "linear")
BASELINES = ("deeprm", "deeprm2", "deeprm_long", "deeprm2_long")  # networks on images, where there are any


@dataclass(frozen=True)
class Problem:
    """A scenario, and how much of it."""

    name: str
    params: Params
    loads: tuple[int, ...]
    steps: int | None = None  # of a stream
    validation: int = VALIDATION
    test: int = TEST

    @property
    def pool_scenario(self) -> PoolScenario:
        """Return the cluster and how jobs arrive."""
        return self.params.pool_scenario("online")

    @property
    def measured(self) -> tuple[float, float]:
        """Steps in which jobs that count arrive."""
        return (0.2 * self.steps, 0.8 * self.steps) if self.steps else (0.0, float("inf"))

    def jobsets(self, split: str, count: int) -> dict[int, list[JobSet]]:
        """Return so many jobsets of a split, by load."""
        workload = self.params.workload
        origin = source(self.params, "online", Path(workload.path) if isinstance(workload, PoolLog) else storage.LOG)
        if self.steps:
            return {load: [origin.piece(split, load, k, self.steps) for k in range(count)] for load in self.loads}
        if isinstance(workload, PoolLog):
            return {load: jobs[:count] for load, jobs in origin.split(split).items()}
        return {load: [origin._draw(split, load, k) for k in range(count)] for load in self.loads}


def play(problem: Problem, jobsets: Mapping[int, Sequence[JobSet]], who: object) -> pd.DataFrame:
    """Return slowdowns of every jobset under a heuristic or a network."""
    rows = []
    for load, group in jobsets.items():
        size = max(1, ABREAST // max(len(jobs.arrival) for jobs in group))
        for first in range(0, len(group), size):
            rows.append(_play(problem, group[first : first + size], who).assign(load=load))
    return pd.concat(rows, ignore_index=True)


def _play(problem: Problem, group: Sequence[JobSet], who: object) -> pd.DataFrame:
    jobs = batch(group)
    limit = 40 * (problem.steps or 50 if problem.params.workload.name == "synthetic" else 1_000_000)
    simulator = Batched(jobs, Cluster.of(problem.scenario), limit, skip_forced=True)
    number = np.arange(jobs.episodes)
    key = keys(problem.params.seed, number, np.zeros_like(number))
    if isinstance(who, Sets):
        Roller(simulator, who.compiled(), key, greedy=True).play()
    elif isinstance(who, CompiledRule):
        simulator.play(simulator.rows, players([who] * jobs.episodes, key), NEVER)
    else:
        play_plainly(simulator, who, key)
    fared = outcome(jobs, simulator.schedule(), limit)
    low, high = problem.measured
    kept = (jobs.arrival >= low) & (jobs.arrival < high)
    table = pd.DataFrame({"episode": jobs.episode[kept], "slowdown": fared.slowdown[kept]})
    table["wait"] = (fared.finish - jobs.arrival - jobs.duration)[kept]
    table["unfinished"] = fared.unfinished[kept]
    each = table.groupby("episode")
    return pd.DataFrame(
        {
            "mean": each["slowdown"].mean(),
            "p99": each["slowdown"].quantile(0.99),
            "worst_wait": each["wait"].max(),
            "unfinished": each["unfinished"].sum(),
        }
    ).reset_index(drop=True)


def heuristics(problem: Problem) -> tuple[dict[str, CompiledRule], dict[int, str]]:
    """Return heuristics as tuned on validation jobsets, and the best of them at each load."""
    validation = problem.jobsets("validation", problem.validation)

    def examine(policies: Mapping[str, object]) -> dict[str, Results]:
        played = {name: play(problem, validation, compiled_rule_of(policy)) for name, policy in policies.items()}
        return {name: Results(table, table.rename(columns={"mean": "mean_slowdown"})) for name, table in played.items()}

    training = {0: [jobs for group in validation.values() for jobs in group]}
    knobs = tuned(examine, problem.params.heuristics.pool, training)
    policies = {name: policy for name, policy in heuristics_with(knobs).items() if name != "random"}
    found = examine(policies)
    means = {name: done.by_load for name, done in found.items()}
    best = {load: min(means, key=lambda name: means[name][load]) for load in next(iter(means.values()))}
    return {name: compiled_rule_of(policy) for name, policy in policies.items()}, best


def networks(folder: Path) -> dict[str, object]:
    """Return the stored networks of a folder, by its name there."""
    found = {}
    for place in sorted(path for path in folder.iterdir() if (path / "policy.safetensors").exists()):
        model = storage.read_model(place)
        loaded = restore(model.card, model.weights)
        found[place.name] = loaded.network if isinstance(loaded.network, Sets) else loaded.policy
    return found


def run(problem: Problem, folder: Path, out: Path, image: bool) -> None:
    """Measure one problem, and write who is how much better than whom."""
    rules, best = heuristics(problem)
    learned = {name: who for name, who in networks(folder).items() if image or isinstance(who, Sets)}
    test = problem.jobsets("test", problem.test)
    tables = [play(problem, test, who).assign(policy=name) for name, who in {**rules, **learned}.items()]
    table = pd.concat([*tables, *over_seeds(tables, learned)], ignore_index=True)
    table["jobset"] = table.groupby(["policy", "load"]).cumcount()
    frame = table.rename(columns={"mean": "mean_slowdown"})
    others = {name.rsplit("_", 1)[0] for name in learned} & set(BASELINES)
    against = {name: dict.fromkeys(best, name) for name in (*REFERENCES, *sorted(others))} | {"best_heuristic": best}
    rows = comparison(frame, problem.name, against, problem.params.evaluation, np.random.default_rng(1))
    tails = table.groupby(["load", "policy"])[["p99", "worst_wait"]].mean().reset_index()
    tails["load"] = tails["load"].map(lambda load: f"{load:03d}")
    rows = rows.merge(tails, on=["load", "policy"], how="left")
    rows["best_heuristic"] = rows["load"].map({f"{load:03d}": name for load, name in best.items()})
    out.mkdir(parents=True, exist_ok=True)
    rows.to_csv(out / f"{problem.name}.csv", index=False, float_format="%.5g")
    means = table.groupby(["policy", "load"])["mean"].mean().unstack().round(3)
    say(f"{problem.name}: best {best}, {int(table['unfinished'].sum())} unfinished\n{means.to_string()}")


def over_seeds(tables: Sequence[pd.DataFrame], learned: Mapping[str, object]) -> list[pd.DataFrame]:
    """Return the mean over training seeds (agent_1, agent_2, ...) of each agent, jobset by jobset."""
    found = []
    for agent in {name.rsplit("_", 1)[0] for name in learned}:
        mine = [table for table in tables if table["policy"].iloc[0].rsplit("_", 1)[0] == agent]
        mean = sum(table[["mean", "p99", "worst_wait", "unfinished"]] for table in mine) / len(mine)
        found.append(mean.assign(load=mine[0]["load"].to_numpy(), policy=agent))
    return found


def _with(params: Params, **changed: object) -> Params:
    row = params.scenarios["online"].model_copy(update=changed)
    return params.model_copy(update={"scenarios": {**params.scenarios, "online": row}})


def problems(params: Params) -> dict[str, Problem]:
    """Return all problems by name."""
    short = (70, 90, 110, 130, 150, 170, 190)
    streams = (70, 80, 90, 95)
    few = (70, 110, 150, 190)
    shares = params.model_copy(
        update={"workload": params.workload.model_copy(update={"short": (1, 5), "long": (8, 20), "short_share": 0.6})}
    )
    shorter = params.model_copy(
        update={"workload": params.workload.model_copy(update={"short": (1, 2), "long": (5, 8), "short_share": 0.7})}
    )
    knobs = params.heuristics.pool
    longer = knobs.model_copy(update={"linear": knobs.linear.model_copy(update={"rounds": 8})})
    search = params.heuristics.model_copy(update={"pool": longer})
    light = params.model_copy(update={"heuristics": search})
    noisy = light.model_copy(update={"workload": params.workload.model_copy(update={"estimate_noise": NOISE})})
    log = light.model_copy(update={"workload": PoolLog(name="swf", path=HPC2N)})
    found = [
        Problem("short", params, short),
        Problem("streams", _with(light, slots=60), streams, steps=2500, validation=6),
        Problem("streams_10", light, streams, steps=2500, validation=6, test=60),
        *(Problem(f"slots_{slots}", _with(light, slots=slots), few) for slots in (5, 20, 60, 128)),
        *(
            Problem(f"capacity_{units}", _with(light, resources={"cpu": units, "memory": units}), few)
            for units in (20, 40)
        ),
        Problem("three", _with(light, resources={"cpu": 20, "memory": 20, "gpu": 20}), few),
        Problem("text", _with(light, resources={"cpu": 20, "memory": 20}, demand="text"), few),
        Problem("horizon_40", _with(light, horizon=40), few),
        Problem("mix_flat", _with(shares.model_copy(update={"heuristics": search}), horizon=20), few),
        Problem("mix_short", shorter.model_copy(update={"heuristics": search}), few),
        Problem("bernoulli", _with(light, arrivals=Streaming(name="bernoulli", steps=50)), few),
        Problem("bursts", _with(light, arrivals=Streaming(name="bursts", steps=50, size=5.0)), few),
        Problem("estimates", _with(noisy, policies_know="estimates"), few),
        *(Problem(f"hpc2n_{known}", _with(log, policies_know=known), ()) for known in ("durations", "estimates")),
    ]
    return {problem.name: problem for problem in found}


if __name__ == "__main__":
    known = problems(load_params())
    for name in sys.argv[3:] or known:
        if isinstance(known[name].params.workload, PoolLog) and not Path(HPC2N).exists():
            say(f"{name}: left out, for there is no {HPC2N}")
            continue
        run(known[name], Path(sys.argv[1]), Path(sys.argv[2]), image=name in ("short", "streams_10"))
