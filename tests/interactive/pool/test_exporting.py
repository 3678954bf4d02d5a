"""Exported networks of a pooled cluster decide as ours do, from fields of the observation."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from builders import viewed

from pipeline.core import storage
from pipeline.core.config import Params, PoolCard
from pipeline.core.types import Observation, legal_actions
from pipeline.errors import UserError
from pipeline.external.loading import of_file
from pipeline.interactive.pool.exporting import onnx
from pipeline.problems.pool.agents.learning import LEARNING
from pipeline.problems.pool.agents.networks.networks import build, restore
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.simulation.rollout import random

STATES = 10_000
CLOSE = 1e-5  # of logits
SMALL = {"resources": {"cpu": 5, "memory": 4}, "horizon": 8, "slots": 4, "backlog": 8}


@pytest.fixture(scope="module")
def view() -> Observation:
    """What is met by chance; in half of it the end of arrivals is known."""
    found = viewed(Cluster((5, 4), 8, 4, 8, False, 5), random, episodes=240, jobs=30).take(slice(STATES))
    end = np.where(np.arange(STATES) % 2, np.inf, np.arange(STATES) % 40)
    return found._replace(to_end=end)


# An MLP and a CNN on the image; to export one takes seconds.
@pytest.mark.parametrize("agent", ["deeprm", pytest.param("deeprm2", marks=pytest.mark.slow)])
def test_an_exported_network_decides_as_ours_in_ten_thousand_states(
    params: Params, tmp_path: Path, view: Observation, agent: str
) -> None:
    scenario = params.pool_scenario("online").model_copy(update=SMALL)
    small = params.model_copy(update={"scenarios": {"online": scenario}})
    network = build(small.agent(agent).network, Cluster.of(scenario), seed=3)
    storage.write_model(tmp_path, LEARNING.model(small, agent, network))
    (tmp_path / "out.onnx").write_bytes(onnx(tmp_path))
    model = storage.read_model(tmp_path, PoolCard)
    ours = restore(model.card, model.weights)
    assert len(view.now) == STATES
    draws = np.zeros(STATES)
    expected = ours.policy(view, draws)
    assert len(set(expected.tolist())) > 2
    assert np.array_equal(of_file(tmp_path / "out.onnx", 1.0)(view, draws), expected)
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    given = {**view._asdict(), "action_mask": legal_actions(view)}
    feed = {one.name: given[one.name].astype(bool if "bool" in one.type else float) for one in session.get_inputs()}
    (logits,) = session.run(["logits"], feed)
    observed = ours.network.encode(view)
    assert np.array_equal(np.isfinite(logits), observed.may)
    assert np.abs(logits - ours.network.frozen()(observed))[observed.may].max() < CLOSE


def test_scores_have_no_such_form(params: Params, tmp_path: Path) -> None:
    scenario = params.pool_scenario("online")
    network = build(params.agent("deeprm3").network, Cluster.of(scenario), seed=3)
    storage.write_model(tmp_path, LEARNING.model(params, "deeprm3", network))
    with pytest.raises(UserError, match=r"a network 'scores' has no ONNX form"):
        onnx(tmp_path)
