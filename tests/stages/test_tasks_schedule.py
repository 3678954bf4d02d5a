"""`schedule` with all jobs known beforehand: `--samples` and `--search`, as users see them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.interactive.pool.policies import policy_for
from pipeline.interactive.pool.scheduling import MOST_STEPS, MOST_TRIED
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.networks import build, card_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.env.workload.source import source
from pipeline.problems.pool.heuristics.scores import LINEAR_KNOBS, heuristics_with

HEAD = "jobset,job,arrival,duration,cpu,memory"

Command = Callable[..., Any]


def schedule(command: Command, *more: object, policy: str = "fcfs", out: str = "out.csv") -> Any:
    return command("schedule", "jobs.csv", "--scenario", "online", "--policy", policy, "--out", out, *more)


@pytest.fixture
def crowds(place: Path) -> None:
    """Three jobsets of 25 jobs, most of which need more than half of a resource."""
    rng = np.random.default_rng(1)
    rows = [HEAD]
    for k in range(75):
        demand = rng.permuted([rng.integers(5, 11), rng.integers(1, 3)])
        rows.append(f"{k % 3},{k},{k // 10},{rng.choice([1, 2, 3, 12, 15])},{demand[0]},{demand[1]}")
    Path("jobs.csv").write_text("\n".join([*rows, ""]))


@pytest.fixture(params=["deeprm", "deeprm2"])
def model(request: pytest.FixtureRequest, place: Path, params: Params) -> str:
    """A directory with the model of an agent that draws images, with initial weights."""
    agent = str(request.param)
    network = build(params.agent(agent).network, Cluster.of(params.pool_scenario("online")), seed=3)
    storage.write_model(Path("model"), storage.Model(card_of(params, agent), weights_of(network)))
    return "model"


def means() -> np.ndarray:
    """The mean slowdown of each jobset in the schedule."""
    return pd.read_csv("out.csv").groupby("jobset")["slowdown"].mean().to_numpy()


def test_a_search_finds_the_schedule_that_is_known_to_be_the_best(command: Command) -> None:
    # First come, first served: a at 0, b at 10, c at 11. Shortest first: slowdowns 1, 3 / 2 and 13 / 10.
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,0,10,10,1\n0,b,0,1,10,1\n0,c,0,2,10,1\n")
    assert schedule(command).code == 0
    assert Path("out.csv").read_text() == "jobset,job,start,finish,slowdown\n0,a,0,10,1\n0,b,10,11,11\n0,c,11,13,6.5\n"
    assert schedule(command, "--search", 100).code == 0
    assert Path("out.csv").read_text() == "jobset,job,start,finish,slowdown\n0,a,3,13,1.3\n0,b,0,1,1\n0,c,1,3,1.5\n"


def test_where_estimates_are_told_jobs_go_by_them_and_are_judged_by_how_long_they_run(command: Command) -> None:
    params = Path("params.yaml").read_text()
    for row, more in (("  online:", "policies_know: estimates"), ("  name: synthetic", "estimate_noise: 0.5")):
        assert f"{row}\n" in params
        indent = "    " if row == "  online:" else "  "
        params = params.replace(f"{row}\n", f"{row}\n{indent}{more}\n", 1)
    Path("params.yaml").write_text(params)
    # By estimate: c, b, a. By run time: a, b, c.
    Path("jobs.csv").write_text(f"{HEAD},estimate\n0,a,0,1,10,1,9\n0,b,0,2,10,1,5\n0,c,0,4,10,1,2\n")
    assert schedule(command, policy="sjf").code == 0
    assert Path("out.csv").read_text() == "jobset,job,start,finish,slowdown\n0,a,6,7,7\n0,b,4,6,3\n0,c,0,4,1\n"
    assert schedule(command, "--search", 100, policy="sjf").code == 0
    assert Path("out.csv").read_text().splitlines()[1:] == ["0,a,0,1,1", "0,b,1,3,1.5", "0,c,3,7,1.75"]


def test_a_search_knows_what_has_not_arrived_yet_and_says_so(command: Command) -> None:
    # When a could start, no policy knows of b; in hindsight, a waits for two steps. The table begins late.
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,1700000000,10,10,10\n0,b,1700000001,1,10,10\n")
    outcome = schedule(command, "--search", 20, policy="sjf")
    assert outcome.code == 0
    assert Path("out.csv").read_text().splitlines()[1:] == [
        "0,a,1700000002,1700000012,1.2",
        "0,b,1700000001,1700000002,1",
    ]
    assert outcome.err.splitlines() == [
        "a plan in hindsight, all jobs known beforehand: mean slowdown 5.5 as scheduled, 1.1 after a search of 20",
        "out.csv: 2 jobs, mean slowdown 1.1 under a plan in hindsight from sjf",
    ]


def test_the_help_says_that_all_jobs_are_known_beforehand(command: Command) -> None:
    said = " ".join(command("schedule", "--help").out.split())
    assert (
        "With --samples and --search all jobs are known beforehand: a plan in hindsight, not an online policy" in said
    )
    assert f"limited to {MOST_TRIED:,} jobs times schedules, and to jobsets of up to {MOST_STEPS:,} steps" in said


@pytest.mark.usefixtures("crowds")
def test_a_plan_is_never_worse_and_the_same_twice(command: Command, model: str) -> None:
    found = []
    for more in ((), ("--samples", 6), ("--samples", 6, "--search", 300)):
        outcome = schedule(command, *more, policy=model)
        assert outcome.code == 0, outcome.err
        assert ("in hindsight" in outcome.err) == bool(more)
        found.append(means())
        first = Path("out.csv").read_bytes()
        assert schedule(command, *more, policy=model).code == 0
        assert Path("out.csv").read_bytes() == first
    assert (found[1] <= found[0]).all()
    assert (found[2] <= found[1]).all()
    assert found[1].mean() < found[0].mean()
    assert found[2].mean() < 0.9 * found[1].mean()


@pytest.mark.usefixtures("crowds")
def test_a_policy_that_draws_anyway_has_its_own_schedule_among_them(command: Command, params: Params) -> None:
    network = build(params.agent("deeprm3").network, Cluster.of(params.pool_scenario("online")), seed=3)
    card = card_of(params, "deeprm3").model_copy(update={"play": "sampled"})
    storage.write_model(Path("model"), storage.Model(card, weights_of(network)))
    assert schedule(command, policy="model").code == 0
    alone = means()
    assert schedule(command, "--samples", 1, policy="model").code == 0
    assert (means() <= alone).all()


@pytest.mark.usefixtures("crowds")
def test_jobs_stay_within_the_cluster_and_behind_their_arrival(command: Command) -> None:
    assert schedule(command, "--search", 500, policy="sjf").code == 0
    jobs, found = pd.read_csv("jobs.csv"), pd.read_csv("out.csv")
    assert (found["start"] >= jobs["arrival"]).all()
    assert (found["finish"] == found["start"] + jobs["duration"]).all()
    for _, mine in jobs.join(found[["start", "finish"]]).groupby("jobset"):
        for step in mine["start"]:
            running = mine[(mine["start"] <= step) & (step < mine["finish"])]
            assert (running[["cpu", "memory"]].sum() <= 10).all()


@pytest.mark.usefixtures("crowds")
@pytest.mark.parametrize("policy", ["sjf", "random"])
def test_draws_of_a_heuristic_are_refused_before_any_work(command: Command, policy: str) -> None:
    outcome = schedule(command, "--samples", 2, policy=policy)
    assert outcome.code == 2
    assert outcome.err == (
        f"error: --samples: expected a model directory, got '{policy}', which makes the same schedule every time\n"
    )
    assert not Path("out.csv").exists()


# The end of arrivals


def started(out: str = "out.csv") -> list[list[int]]:
    """Starts of the jobs of each jobset."""
    return [some["start"].tolist() for _, some in pd.read_csv(out).groupby("jobset")]


def test_a_policy_that_is_given_the_end_of_arrivals_does_what_it_does_in_the_scenario(
    command: Command, params: Params
) -> None:
    # The score of the long job is -log 15 = -2.71. That of void is -2.9, and with 50 steps of arrivals to come
    # -2.9 + 0.35 log 51 = -1.52: the job waits until 20 steps without an arrival are over.
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,0,15,10,1\n0,b,1,1,10,1\n1,a,0,15,10,1\n")
    end = params.pool_scenario("online").arrivals_end
    assert end == 50
    knobs = dict.fromkeys(LINEAR_KNOBS, 0.0) | {"linear_short": 1.0, "linear_always": -2.9}
    knobs["linear_to_end"] = 0.35
    storage.write_chosen("online", storage.Chosen(knobs=knobs, validation={}, best={}, best_delay={}))
    done = schedule(command, "--arrivals-end", end, policy="linear")
    assert started() == [[21, 1], [20]]
    # Slowdowns are 36 / 15 and 1; 35 / 15. The mean over jobs is 1.911, over jobsets (1.7 + 2.333) / 2.
    said = "out.csv: 3 jobs, mean slowdown 1.911 (2.017 as tables of results have it, over jobsets) under linear"
    assert done.err.splitlines()[-1] == said
    wide = (np.array([[10, 1], [10, 1]]), np.array([[10, 1]]))
    arrivals, durations = (np.array([0, 1]), np.array([0])), (np.array([15, 1]), np.array([15]))
    jobsets = {100: [JobSet(*each) for each in zip(arrivals, durations, wide, strict=True)]}
    row = params.pool_scenario("online")
    found = score({"linear": heuristics_with(knobs)["linear"]}, jobsets, Cluster.of(row), row.step_limit, params.seed)[
        "linear"
    ]
    assert [some["start"].tolist() for _, some in found.jobs.groupby("jobset")] == started()
    done = schedule(command, policy="linear")
    assert started() == [[0, 15], [0]]
    for option in ("arrivals-end", "load"):
        assert f"linear may decide by --{option}, which it is given in scenario 'online' and not here\n" in done.err


BOTH = """
import numpy as np

from pipeline.core.types import legal_actions
from pipeline.simulation.rollout import choose, sjf


def decide(view, draws):
    busy = (view.load > 100) & np.isfinite(view.to_end) & (view.to_end > 10) & legal_actions(view)[:, -1]
    return choose(np.where((view.duration >= 10) & busy[:, None], -np.inf, sjf(view)), view)
"""


@pytest.mark.parametrize("policy", ["hold_until", "both.py:decide", "model"])
def test_a_policy_that_is_given_load_and_end_does_what_it_does_in_the_scenario(
    command: Command, params: Params, policy: str
) -> None:
    Path("both.py").write_text(BOTH)
    row, name = params.pool_scenario("online"), "deeprm3"
    network = build(params.agent(name).network, Cluster.of(row), seed=3)
    storage.write_model(Path("model"), storage.Model(card_of(params, name), weights_of(network)))
    jobsets = [source(params, "online", Path("none")).fresh(130, number) for number in range(8)]
    rows = [
        f"{k},{j},{jobs.arrival[j]},{jobs.duration[j]},{jobs.demand[j, 0]},{jobs.demand[j, 1]}"
        for k, jobs in enumerate(jobsets)
        for j in range(len(jobs.arrival))
    ]
    Path("jobs.csv").write_text("\n".join([HEAD, *rows, ""]))
    chosen, masked = policy_for(params, policy, row, "online", Cluster.of(row))
    found = score({policy: chosen}, {130: jobsets}, Cluster.of(row), row.step_limit, params.seed, masked)[policy]
    done = schedule(command, "--arrivals-end", row.arrivals_end, "--load", 130, policy=policy)
    assert f"({found.by_load[130]:.4g} as tables of results have it, over jobsets)" in done.err
    assert started() == [some["start"].tolist() for _, some in found.jobs.groupby("jobset")]
    same = started()
    for less in (["--load", 130], ["--arrivals-end", row.arrivals_end], ["--arrivals-end", 50, "--load", 90]):
        assert schedule(command, *less, policy=policy).code == 0
        assert policy != "both.py:decide" or started() != same


@pytest.mark.usefixtures("crowds")
def test_a_job_after_the_end_of_arrivals_is_refused_before_any_work(command: Command) -> None:
    outcome = schedule(command, "--arrivals-end", 7)  # the last five jobs arrive in step 7
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1] == (
        "error: jobs.csv: --arrivals-end: expected a step after the last arrival, in step 7, got 7"
    )
    assert not Path("out.csv").exists()
    assert schedule(command, "--arrivals-end", 8).code == 0


@pytest.mark.parametrize("scenario", ["machines", "shares"])
@pytest.mark.parametrize("words", ["schedule jobs.csv", "show jobs.csv --against sjf"])
def test_the_end_of_arrivals_is_refused_where_no_policy_is_given_it(
    command: Command, words: str, scenario: str
) -> None:
    options = ["--policy", "sjf", "--scenario", scenario, "--out", "out.png" if "show" in words else "out.csv"]
    for option in ("--arrivals-end", "--load"):
        done = command(*words.split(), *options, option, 5)
        said = f"error: {option}: not in scenario '{scenario}': only policies of pooled clusters use it\n"
        assert (done.code, done.err) == (2, said)


# Several policies


def test_several_policies_write_a_file_each_and_are_compared(command: Command) -> None:
    # Both start a at 0, when it is alone, and b at 10. Then fcfs starts c and d, and sjf d and c.
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,0,10,10,1\n0,b,1,1,10,1\n0,c,1,2,10,1\n0,d,1,1,10,1\n")
    done = schedule(command, "--policy", "sjf", policy="fcfs", out="plan.csv.gz")
    assert done.code == 0
    assert not Path("plan.csv.gz").exists()
    written = {name: pd.read_csv(f"plan_{name}.csv.gz")["slowdown"].mean() for name in ("fcfs", "sjf")}
    assert written == {"fcfs": (1 + 10 + 12 / 2 + 13) / 4, "sjf": (1 + 10 + 11 + 13 / 2) / 4}
    assert done.out.splitlines() == ["policy  mean slowdown", "sjf             7.125", "fcfs              7.5"]


def test_a_policy_named_twice_is_refused_before_any_work(command: Command) -> None:
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,0,10,10,1\n")
    done = schedule(command, "--policy", "models/fcfs", policy="fcfs")
    assert (done.code, done.err) == (2, "error: --policy: 2 policies would write out_fcfs.csv: name each once\n")
