"""A stored controller that is asked with rows of numbers."""

from pathlib import Path

import numpy as np
import pytest
from flat_rows import flattened
from group_models import drawn, write_controller
from group_rows import shared
from numpy.testing import assert_array_equal

from pipeline.errors import UserError
from pipeline.interactive.groups.serving import SHAPES, answers, layout, served
from pipeline.problems.groups.agents.networks.q_network import controller
from pipeline.problems.groups.env.nouns import Observation, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of

PARAMS = shared()
CLUSTER = cluster_of(PARAMS.groups_scenario("shared"))


def views() -> list[Observation]:
    """What is seen of a few episodes, interval by interval, under the stored controller's own settings."""
    jobs = batch(drawn(PARAMS, 120, 3))
    groups, found = GroupsSimulator(jobs, CLUSTER, np.ones(len(jobs.arrival))), []
    control = controller(write_controller(PARAMS, Path("policy")), CLUSTER, CONFIGURATIONS)
    while len(rows := groups.rows):
        found.append(groups.observe(rows))
        groups.step(rows, control(found[-1], np.zeros(len(rows))))
    return found


CONFIGURATIONS = configurations_of(PARAMS.groups_scenario("shared"))


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_rows_name_every_field_of_an_observation_in_its_order() -> None:
    assert tuple(SHAPES) == Observation._fields


def test_an_observation_comes_back_from_its_row() -> None:
    for view in views():
        rows = flattened(layout(CLUSTER), view, np.float64)
        assert rows.shape == (len(view.now), layout(CLUSTER).width)
        back = layout(CLUSTER).fields(rows)
        for name, mine, again in zip(Observation._fields, view, Observation(**back), strict=True):
            assert mine.dtype.kind == again.dtype.kind, name
            assert_array_equal(mine, again, err_msg=name)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_served_controller_sets_what_the_controller_does(kind: type) -> None:
    seen = views()
    control, asked = (
        controller(write_controller(PARAMS, Path("policy")), CLUSTER, CONFIGURATIONS),
        served(Path("policy")),
    )
    assert (asked.width, asked.answer) == (layout(CLUSTER).width, 2 * 2 + 2)
    for view in seen:
        found = asked.act(flattened(layout(CLUSTER), view, np.float64).astype(kind), np.zeros(len(view.now)))
        assert found.shape == (len(view.now), 6)
        assert_array_equal(found, answers(control(view, np.zeros(len(view.now)))))


def test_an_answer_is_shares_and_then_orders() -> None:
    view = views()[0]
    control = controller(write_controller(PARAMS, Path("policy")), CLUSTER, CONFIGURATIONS)
    setting = control(view, np.zeros(len(view.now)))
    row = served(Path("policy")).act(flattened(layout(CLUSTER), view, np.float64), np.zeros(len(view.now)))[0]
    assert row[:4].reshape(2, 2).tolist() == setting.share[0].tolist()
    assert row[4:].tolist() == setting.order[0].tolist()


def test_a_row_of_zeros_is_answered() -> None:
    write_controller(PARAMS, Path("policy"))
    assert np.isfinite(served(Path("policy")).act(np.zeros((1, layout(CLUSTER).width)), np.zeros(1))).all()


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(UserError, match=r"^nothing: not a model directory"):
        served(Path("nothing"))
