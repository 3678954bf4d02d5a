"""The schedules of the original DeepRM, job for job, and what its policies saw."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
import pytest
from builders import ONLY, act, jobset, rewards
from golden import GOLDEN, JOBSETS

from pipeline.core.types import FloatArray, IntArray, Observation, Policy, keys
from pipeline.problems.pool.agents.networks.encodings import Layout, clock, draw
from pipeline.problems.pool.env.nouns import Cluster, JobSet, Schedule, batch, compact
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import Score, heuristic, play
from tests.oracles.pool import Timestep

SLOTS, HORIZON, BACKLOG = 10, 20, 60
VOID = SLOTS
STEP_LIMIT = 2000
CAPACITY = {"repo": 10, "paper": 20}
RATES = [("repo", 0.271003), ("repo", 0.704607), ("paper", 0.758808)]
BUSY = 0.704607  # 130 % load; the recorded observations are of its first jobsets


def in_raw_units(weight: float) -> Score:
    """The original's Tetris: alignment counted in units, not in shares."""

    def score(view: Observation) -> FloatArray:
        aligned = (view.demand * view.free[:, 0, :1].astype(np.int64)).sum(axis=2)
        return np.asarray(weight * aligned + (1 - weight) / np.maximum(view.duration, 1))

    return score


def lowest_slot(view: Observation) -> FloatArray:
    """The original's FCFS: the lowest slot that fits, whoever arrived first."""
    return np.zeros(view.duration.shape)


POLICIES: dict[str, Policy] = {
    "SJF": HEURISTICS["sjf"],
    "Packer": HEURISTICS["packer"],
    "FCFS_arrival": HEURISTICS["fcfs"],
    "FCFS": heuristic(lowest_slot),
    "Tetris_k0.5": heuristic(in_raw_units(0.5)),
    "Tetris_k0.01": heuristic(in_raw_units(0.01)),
}


def cluster(workload: str, replayed: bool) -> Cluster:
    """The original never fills the last row, which matters only where jobs are placed ahead, as its random policy does.

    There our horizon is a row shorter; 121 of the 300 random episodes and 2 of the 12 recorded ones need it.
    """
    rows = HORIZON - int(replayed)
    return Cluster((CAPACITY[workload],) * 2, rows, SLOTS, BACKLOG, place_ahead=replayed)


def with_last_row(view: Observation) -> Observation:
    """What the original shows of a cluster that is replayed: one more row, in which all is free."""
    return view._replace(free=np.concatenate([view.free, view.capacity[:, :, None]], axis=2))


@cache
def table(name: str) -> pd.DataFrame:
    return pd.read_csv(GOLDEN / f"{name}.csv.gz")


@cache
def recorded_jobsets(workload: str, rate: float) -> dict[int, JobSet]:
    jobs = table("jobsets")
    mine = jobs[(jobs["workload"] == workload) & (jobs["rate"] == rate)].sort_values(["jobset", "job"])
    return {
        number: jobset(*mine.loc[mine["jobset"] == number, ["arrival", "duration", "cpu", "memory"]].to_numpy())
        for number in mine["jobset"].unique().tolist()
    }


def recorded(name: str, workload: str, rate: float, policy: str) -> pd.DataFrame:
    rows = table(name)
    mine = rows[(rows["workload"] == workload) & (rows["rate"] == rate) & (rows["policy"] == policy)]
    return mine.sort_values([key for key in ("jobset", "job") if key in mine])


def assert_golden(schedule: Schedule, jobsets: dict[int, JobSet], golden: pd.DataFrame) -> None:
    number = np.concatenate([np.full(len(jobs.arrival), name) for name, jobs in jobsets.items()])
    assert golden["jobset"].tolist() == number.tolist()
    assert golden["start"].tolist() == schedule.start.tolist()
    assert golden["finish"].tolist() == schedule.finish.tolist()


@pytest.mark.parametrize(("workload", "rate"), RATES)
@pytest.mark.parametrize("policy", list(POLICIES))
def test_every_job_starts_and_finishes_as_in_the_original(workload: str, rate: float, policy: str) -> None:
    jobsets = recorded_jobsets(workload, rate)
    assert len(jobsets) == JOBSETS
    simulator = Batched(batch(list(jobsets.values())), cluster(workload, replayed=False), STEP_LIMIT)
    play(simulator, POLICIES[policy], keys(0, np.arange(JOBSETS), np.zeros(JOBSETS, dtype=np.int64)))
    assert_golden(simulator.schedule(), jobsets, recorded("golden_jobs", workload, rate, policy))


def moves(actions: str) -> list[int]:
    """Recorded moves as actions: 0-9 the slot, V void."""
    return [VOID if move == "V" else int(move) for move in actions]


def replay(simulator: Batched, taken: list[list[int]], watch: Callable[[list[int], int], None] | None = None) -> None:
    """Carry out each episode's recorded moves in lock step, to the end of all.

    The original may need one move more than the episode has steps: it can notice the last job's end a step too late.
    """
    for turn in range(max(len(actions) for actions in taken)):
        going = simulator.rows.tolist()
        over = [b for b, actions in enumerate(taken) if turn < len(actions) and b not in going]
        assert all(turn == len(taken[b]) - 1 for b in over)
        if watch is not None:
            watch(going, turn)
        simulator.step(np.array(going), np.array([taken[b][turn] for b in going]))
    assert not len(simulator.rows)


@pytest.mark.parametrize(("workload", "rate"), RATES)
def test_random_moves_replayed_give_the_schedules_of_the_original(workload: str, rate: float) -> None:
    jobsets = recorded_jobsets(workload, rate)
    rows = recorded("golden_jobsets", workload, rate, "Random").set_index("jobset")["actions"]
    simulator = Batched(batch(list(jobsets.values())), cluster(workload, replayed=True), STEP_LIMIT)
    replay(simulator, [moves(rows[number]) for number in jobsets])
    assert_golden(simulator.schedule(), jobsets, recorded("golden_jobs", workload, rate, "Random"))


@cache
def recording() -> dict[str, np.ndarray]:
    with np.load(GOLDEN / "observations.npz") as file:
        return dict(file)


EPISODES = [(policy, number) for policy in range(3) for number in range(4)]


def decisions_of(policy: int, number: int) -> list[int]:
    """Return an episode's rows of the recording."""
    rows = np.flatnonzero((recording()["policy"] == policy) & (recording()["jobset"] == number))
    assert recording()["step"][rows].tolist() == list(range(len(rows)))
    return [int(row) for row in rows]


def assert_same_state(view: Observation, rows: list[int]) -> None:
    golden = recording()
    assert view.now.tolist() == golden["time"][rows].tolist()
    assert view.backlog.tolist() == golden["backlog"][rows].tolist()
    assert np.array_equal(view.free[:, 0], golden["avail"][rows])
    assert clock(compact(view)).tolist() == golden["extra"][rows].tolist()


def assert_same_image(view: Observation, rows: list[int]) -> None:
    """Slots and backlog pixel for pixel; the cluster's by units in use, which the original shifts sideways."""
    layout = Layout.of(cluster("repo", replayed=False), clock=False)
    ours, original = (
        draw(compact(view), layout),
        np.unpackbits(recording()["packed"][rows], axis=2, count=layout.columns),
    )
    exact = np.ones(layout.columns, dtype=bool)
    for left in (0, 110):  # each resource: 10 columns of units in use, then its ten slots
        in_use = slice(left, left + 10)
        exact[in_use] = False
        assert np.array_equal(ours[:, :, in_use].sum(axis=2), original[:, :, in_use].sum(axis=2))
    assert np.array_equal(ours[:, :, exact], original[:, :, exact])


def minus_slowdowns(jobs: JobSet, finish: IntArray) -> float:
    return -float(((finish - jobs.arrival) / jobs.duration).sum())


def test_every_recorded_decision_is_made_on_what_the_original_showed() -> None:
    rows = [decisions_of(*episode) for episode in EPISODES]
    jobsets = [recorded_jobsets("repo", BUSY)[number] for _, number in EPISODES]
    simulator = Batched(batch(jobsets), cluster("repo", replayed=True), STEP_LIMIT, "slowdown")
    compared = []

    def watch(going: list[int], turn: int) -> None:
        now = [rows[b][turn] for b in going]
        view = with_last_row(simulator.observe(np.array(going)))
        assert_same_state(view, now)
        assert_same_image(view, now)
        compared.extend(now)

    replay(simulator, [recording()["action"][own].tolist() for own in rows], watch)
    assert sorted(compared) == list(range(1685))
    first, finish = simulator.jobs.first, simulator.schedule().finish
    expected = [minus_slowdowns(jobs, finish[first[b] : first[b + 1]]) for b, jobs in enumerate(jobsets)]
    assert simulator.rewards.sum(axis=1) == pytest.approx(np.array(expected), abs=1e-9, rel=0)


@pytest.mark.parametrize(("policy", "number"), EPISODES)
def test_the_plain_simulator_shows_the_same(policy: int, number: int) -> None:
    jobs = recorded_jobsets("repo", BUSY)[number]
    simulator = Timestep(jobs, cluster("repo", replayed=True), STEP_LIMIT)
    for row in decisions_of(policy, number):
        assert_same_state(with_last_row(simulator.observe(ONLY)), [row])
        act(simulator, int(recording()["action"][row]))
    assert simulator.done
    assert sum(rewards(simulator)) == pytest.approx(minus_slowdowns(jobs, simulator.schedule().finish), abs=1e-9, rel=0)
