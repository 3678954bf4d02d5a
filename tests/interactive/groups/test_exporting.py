"""An exported controller values every configuration as ours does, from fields of the observation."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from group_models import drawn, write_controller
from group_rows import rows, shared

from pipeline.core.config import check_params
from pipeline.errors import UserError
from pipeline.interactive.groups.exporting import onnx
from pipeline.problems.groups.agents.networks.features import states
from pipeline.problems.groups.agents.networks.q_network import values_of
from pipeline.problems.groups.env.nouns import Observation, Setting, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.simulator.rewards import WAITING, transitions
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of

STATES = 10_000
CLOSE = 1e-5  # of values


def test_a_network_that_sums_rewards_is_refused_for_its_values_are_not_all(tmp_path: Path) -> None:
    values = rows()
    values["agents"]["mine"]["network"]["combine"] = "reward"
    write_controller(check_params(values, "params.yaml"), tmp_path)
    with pytest.raises(UserError, match=r"^model of agent 'mine': expected network.combine q, .*; got reward$"):
        onnx(tmp_path)


def test_an_exported_network_values_as_ours_in_ten_thousand_states(tmp_path: Path) -> None:
    params = shared()
    network, row = write_controller(params, tmp_path), params.groups_scenario("shared")
    cluster, units = cluster_of(row), configurations_of(row).units
    jobs, rng = batch(drawn(params, 100, 250)), np.random.default_rng(0)
    most, orders = int(cluster.capacity.max()), len(cluster.orders)

    def acts(rows: np.ndarray, view: Observation) -> Setting:
        return Setting(rng.integers(0, most, view.share.shape), rng.integers(0, orders, view.order.shape))

    found = [one.view for one in transitions(GroupsSimulator(jobs, cluster, WAITING["delay"](jobs)), acts, "zero")]
    whole = [np.concatenate(field) for field in zip(*found, strict=True)]
    more = -(-STATES // len(whole[0]))
    assert more <= 4
    view = Observation._make(np.concatenate([field] * more)[:STATES] for field in whole)
    view = view._replace(left=view.left * rng.uniform(0.5, 2.0, view.left.shape))  # none of them twice
    session = onnxruntime.InferenceSession(onnx(tmp_path))
    (values,) = session.run(
        ["values"], {one.name: getattr(view, one.name).astype(float) for one in session.get_inputs()}
    )
    expected = values_of(network, states(view, cluster), units)
    assert values.shape == expected.shape
    assert len(values) == STATES
    flat, ours = values.reshape(STATES, cluster.groups, -1), expected.reshape(STATES, cluster.groups, -1)
    assert len(set(ours.argmax(axis=2).ravel().tolist())) > 2
    assert np.array_equal(flat.argmax(axis=2), ours.argmax(axis=2))
    assert np.abs(flat - ours).max() < CLOSE
