"""`generate`: a kill between two of its files leaves no mix of old jobsets and new ones."""

from pathlib import Path

import pytest

from pipeline.config import Counts, Params
from pipeline.errors import UserError
from pipeline.problems.pool.storage import read_jobsets
from pipeline.stages.generate import run
from pipeline.storage import jobsets_folder


def small(params: Params, seed: int) -> Params:
    """A few jobsets of one load."""
    row = params.pool_scenario("online").model_copy(
        update={"loads": (110,), "jobsets": Counts(train=2, validation=2, test=2)}
    )
    return params.model_copy(update={"seed": seed, "scenarios": {"online": row}})


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_jobsets_of_two_seeds_are_never_mixed(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    resources = params.pool_scenario("online").resources
    run(small(params, seed=1), "online")
    old = read_jobsets(jobsets_folder("online"), "test", resources)
    plain, done = Path.replace, []

    def killed(part: Path, target: Path) -> Path:
        if len(done) == renamed:
            raise KeyboardInterrupt
        done.append(target.stem)
        return plain(part, target)

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            run(small(params, seed=2), "online")
    assert sorted(path.name for path in jobsets_folder("online").iterdir()) == sorted(
        f"{split}.parquet" for split in done
    )
    left = {"train", "validation", "test"} - set(done)
    for split in left:
        with pytest.raises(UserError, match=f"{split}.parquet is missing: run 'dvc repro'"):
            read_jobsets(jobsets_folder("online"), split, resources)
    run(small(params, seed=2), "online")
    new = read_jobsets(jobsets_folder("online"), "test", resources)
    assert new[110][0].arrival.tolist() != old[110][0].arrival.tolist()
