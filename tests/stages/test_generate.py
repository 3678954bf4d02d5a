"""`generate`: a kill between two of its files leaves no mix of old and new jobsets."""

from pathlib import Path

import group_rows
import machine_rows
import pytest
from builders import params as builders_params

from pipeline.core.config import Counts, Params, PoolLog
from pipeline.core.storage import LOG, jobsets_folder, scenario_log
from pipeline.errors import UserError
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.stages.generate import run


def cut_from(log: Path, format: str, **accepted: object) -> dict[str, Params]:
    """Make a scenario of each problem whose jobs come from a log."""
    workload = {"format": format, "path": str(log), **accepted}
    pooled = PoolLog.model_validate({"name": "log", "window": 5, **workload})
    row = (
        builders_params().pool_scenario("online").model_copy(update={"jobsets": Counts(train=1, validation=1, test=1)})
    )
    return {
        "online": builders_params().model_copy(update={"workload": pooled, "scenarios": {"online": row}}),
        "few": machine_rows.few(
            machines=[{"count": 2, "has": {"cpu": 4}}], workload=machine_rows.LOG | workload | {"window": 5}
        ),
        "shared": group_rows.shared(resources={"cpu": 8}, workload=group_rows.LOG | workload, interval=800.0),
    }


@pytest.mark.parametrize("scenario", ["online", "few", "shared"])
def test_an_implausible_log_is_not_cut_unless_that_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    job = "{} {} 0 {} 1 -1 -1 1 60 -1 1 {} 1 1 1 -1 -1 -1"
    log = tmp_path / "log.swf"  # limits of 60 minutes
    log.write_text("\n".join(["; MaxProcs: 8", *(job.format(k, 500 * k, 1800 + k, k % 3) for k in range(60))]))
    for link in (LOG, scenario_log(scenario) / "log"):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(log)
    with pytest.raises(
        UserError, match=r"^params.yaml: .*workload: implausible log: limits: 100% .* accept: \[limits\]"
    ):
        run(cut_from(log, "swf")[scenario], scenario)
    assert not jobsets_folder(scenario).exists()
    run(cut_from(log, "swf", accept=("limits",))[scenario], scenario)
    assert jobsets_folder(scenario).exists()


def small(params: Params, seed: int) -> Params:
    """A few jobsets at one load."""
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
