"""An agent's own seeds: they change its initial weights, draws and fresh jobsets; all else stays the same."""

from pathlib import Path

import numpy as np
import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.core.config import Counts, Params, PoolCard, check_params
from pipeline.core.storage import model_folder, read_model
from pipeline.problems.pool.agents.learning import read_task
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.stages import generate, pretrain


def seeded(root: int, start: int | None, play: int | None) -> Params:
    """params.yaml with few jobsets, and with seeds for `deeprm`."""
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
def test_another_seed_of_finetune_changes_draws_and_fresh_jobsets_and_no_other() -> None:
    plain, same, other = (seeded(1, None, play) for play in (None, 1, 2))
    first, again, second = (read_task(rows, "deeprm", rows.agent("deeprm").finetune) for rows in (plain, same, other))
    assert (first.seed, again.seed, second.seed) == (1, 1, 2)
    for load in first.loads:
        assert alike(first.train[load][0], second.train[load][0])
        assert alike(first.stream("validation", load, 7, 500), second.stream("validation", load, 7, 500))
        assert alike(first.fresh(load, 7), again.fresh(load, 7))
        assert alike(first.stream("fresh", load, 7, 500), again.stream("fresh", load, 7, 500))
        assert not alike(first.stream("fresh", load, 7, 500), second.stream("fresh", load, 7, 500))
    fresh = [[task.fresh(load, k) for load in first.loads for k in range(20)] for task in (first, second)]
    assert not any(len(one.arrival) > 5 and alike(one, two) for one in fresh[0] for two in fresh[1])


def alike(one: JobSet, two: JobSet) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one[:3], two[:3], strict=True))
