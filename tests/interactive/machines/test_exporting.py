"""Exported networks of many machines decide as ours do, from fields of the observation."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from machine_learning import MACHINES, SHAPE, some_jobs, untrained

from pipeline.core import storage
from pipeline.core.config import MachinesCard
from pipeline.core.config.machines.learning import DeepSets, Linear, Vector
from pipeline.core.storage import Model
from pipeline.core.types import Observation, legal_actions
from pipeline.external.loading import of_file
from pipeline.interactive.machines.exporting import onnx
from pipeline.learning.stored import weights_of
from pipeline.problems.machines.agents.networks.features import features
from pipeline.problems.machines.agents.networks.loading import forward, restore
from pipeline.problems.machines.env.nouns import end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.simulation.rollout import play, random

STATES = 10_000
CLOSE = 1e-5  # of logits
NETWORKS = {
    "deepsets": DeepSets(name="deepsets", hidden=8),
    "vector": Vector(name="vector", hidden=(16, 8)),
    "linear": Linear(name="linear", begins="area"),
}


@pytest.fixture(scope="module")
def view() -> Observation:
    """What is met by chance."""
    episodes, views = [some_jobs(100, number, 60) for number in range(120)], list[Observation]()
    jobs = end_to_end(episodes)
    simulator = Simulator(jobs, MACHINES, np.zeros(len(jobs.arrival)))
    play(simulator, random, np.arange(len(episodes), dtype=np.uint64), lambda rows, view, actions: views.append(view))
    return Observation._make(np.concatenate(field) for field in zip(*views, strict=True)).take(slice(STATES))


@pytest.mark.parametrize(  # where dispatch blocks, void is never chosen
    ("kind", "dispatch"),
    [
        ("deepsets", "blocking"),
        pytest.param("vector", "greedy", marks=pytest.mark.slow),
        pytest.param("linear", "greedy", marks=pytest.mark.slow),
    ],
)
def test_an_exported_network_decides_as_ours_in_ten_thousand_states(
    tmp_path: Path, view: Observation, kind: str, dispatch: str
) -> None:
    card = MachinesCard(
        problem="machines", agent="mine", scenario="machines", resources=("cpu", "memory"), machines=SHAPE.machines,
        slots=SHAPE.slots, dispatch=dispatch, unit=SHAPE.unit, objective="slowdown", network=NETWORKS[kind],
        play="greedy",
    )  # fmt: skip
    storage.write_model(tmp_path, Model(card, weights_of(untrained(kind))))
    (tmp_path / "out.onnx").write_bytes(onnx(tmp_path))
    model = storage.read_model(tmp_path, MachinesCard)
    ours = restore(model.card, model.weights)
    assert len(view.now) == STATES
    some = view.legal.any(axis=(1, 2)) if dispatch == "blocking" else np.ones(STATES, dtype=bool)
    asked = view.take(np.flatnonzero(some))
    draws = np.zeros(len(asked.now))
    expected = ours.policy(asked, draws)
    assert len(set(expected.tolist())) > 3
    assert np.array_equal(of_file(tmp_path / "out.onnx", 1.0)(asked, draws), expected)
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    given = {**asked._asdict(), "action_mask": legal_actions(asked)}
    feed = {one.name: given[one.name].astype(bool if "bool" in one.type else float) for one in session.get_inputs()}
    (logits,) = session.run(["logits"], feed)
    observed = features(asked, ours.network.shape)
    assert np.array_equal(np.isfinite(logits), observed.may)
    assert np.abs(logits - forward(ours.network, observed))[observed.may].max() < CLOSE
