"""A served policy of many machines: rows of numbers in, the policy's own actions out."""

from pathlib import Path

import numpy as np
import pytest
from flat_rows import flattened
from machine_learning import MACHINES, some_jobs

from pipeline.core import storage
from pipeline.core.config import MachinesCard
from pipeline.core.config.machines.learning import DeepSets, Vector
from pipeline.core.types import Observation, keys
from pipeline.interactive.machines.serving import layout, served, unflatten
from pipeline.learning.stored import weights_of
from pipeline.problems.machines.agents.networks.loading import build, restore, shape_of
from pipeline.problems.machines.env.nouns import DISPATCH, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.simulation.rollout import play

NETWORKS = {"deepsets": DeepSets(name="deepsets", hidden=8), "vector": Vector(name="vector", hidden=(16, 8))}


def card(network: str, play: str, dispatch: str) -> MachinesCard:
    return MachinesCard(
        problem="machines",
        agent="mine",
        scenario="few",
        resources=("cpu", "memory"),
        machines=2,
        slots=4,
        dispatch=dispatch,
        unit=2.0,
        objective="slowdown",
        network=NETWORKS[network],
        play=play,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("network", "how"), [("deepsets", "greedy"), ("deepsets", "sampled"), ("vector", "greedy")])
@pytest.mark.parametrize("dispatch", ["greedy", "easy"])
def test_a_served_policy_acts_as_in_play(network: str, how: str, dispatch: str, tmp_path: Path) -> None:
    mine = card(network, how, dispatch)
    weights = weights_of(build(mine.network, shape_of(mine), seed=1))
    storage.write_model(tmp_path, storage.Model(mine, weights))
    answering, policy = served(tmp_path), restore(mine, weights).policy
    jobs = end_to_end([some_jobs(100, k) for k in range(5)])
    simulator = Simulator(jobs, MACHINES._replace(dispatch=DISPATCH.index(dispatch)), np.zeros(len(jobs.arrival)))
    views: list[tuple[np.ndarray, np.ndarray]] = []

    def watch(rows: np.ndarray, view: Observation, actions: np.ndarray) -> None:
        views.append((flattened(layout(mine), view), actions))
        back = unflatten(views[-1][0], mine)
        for name in ("free", "capacity", "demand", "nodes", "legal", "fits_now", "backlog"):
            assert (getattr(back, name) == getattr(view, name)).all(), name

    half = np.full(5, 0.5)
    key = keys(1, np.arange(5), np.zeros(5, dtype=int))
    play(simulator, lambda view, draws: policy(view, half[: len(draws)]), key, watch)
    assert len(views) > 10
    for rows, actions in views:
        assert rows.shape[1] == answering.width == layout(mine).width
        assert rows.dtype == np.float32
        assert answering.act(rows, half[: len(rows)]).tolist() == actions.tolist()


def test_a_row_of_nothing_lets_time_pass(tmp_path: Path) -> None:
    mine = card("deepsets", "greedy", "greedy")
    storage.write_model(tmp_path, storage.Model(mine, weights_of(build(mine.network, shape_of(mine), seed=1))))
    answering = served(tmp_path)
    assert answering.answer is None
    assert answering.act(np.zeros((2, answering.width), dtype=np.float32), np.zeros(2)).tolist() == [8, 8]
