"""A seed of its own: another start and other draws of one agent, on the same jobsets."""

from pathlib import Path

import numpy as np
import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.config import Counts, Params, PoolCard, check_params
from pipeline.problems.pool.learning import read_task
from pipeline.stages import generate, pretrain
from pipeline.storage import model_folder, read_model


def seeded(root: int, start: int | None, play: int | None) -> Params:
    """params.yaml with few jobsets, and with seeds of `deeprm`."""
    rows = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    rows["seed"] = root
    rows["scenarios"]["online"]["jobsets"] = Counts(train=1, validation=1, test=1).model_dump()
    rows["agents"], rows["transfers"] = {"deeprm": rows["agents"]["deeprm"]}, {}
    for part, seed in (("pretrain", start), ("finetune", play)):
        rows["agents"]["deeprm"][part] |= {} if seed is None else {"seed": seed}
    return check_params(rows, "params.yaml")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the jobsets of seed 1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    generate.run(seeded(1, None, None), "online")


@pytest.mark.usefixtures("place")
def test_initial_weights_follow_the_seed_of_pretrain_or_else_that_of_params() -> None:
    found = {}
    for seeds in ((1, None, None), (1, 1, None), (1, 2, None), (2, None, None), (1, None, 2)):
        pretrain.run(seeded(*seeds), "deeprm")
        weights = read_model(model_folder("deeprm", "pretrained"), PoolCard).weights
        found[seeds] = np.concatenate([value.ravel() for _, value in sorted(weights.items())])
    first = found[1, None, None]
    assert {seeds for seeds, weights in found.items() if (weights == first).all()} == {
        (1, None, None),
        (1, 1, None),
        (1, None, 2),
    }
    assert (found[1, 2, None] == found[2, None, None]).all()


@pytest.mark.usefixtures("place")
def test_another_seed_of_finetune_changes_the_draws_and_no_jobset() -> None:
    plain, other = (seeded(1, None, play) for play in (None, 2))
    first, second = (read_task(rows, "deeprm", rows.agent("deeprm").finetune) for rows in (plain, other))
    assert (first.seed, second.seed) == (1, 2)
    for load in first.loads:
        for one, two in ((first.train[load][0], second.train[load][0]), (first.fresh(load, 7), second.fresh(load, 7))):
            assert (one.arrival == two.arrival).all()
            assert (one.demand == two.demand).all()
