"""The stages that have tasks leave the same bytes wherever those are carried out: on the small problem, two threads."""

import shutil
import sys
from collections.abc import Iterator

import pytest
from builders import REPOSITORY
from repositories import Folder, bytes_of
from ruamel.yaml import YAML

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import slurm, why_not
from pipeline.execution.commands import FOLDER, VARIABLE

pytestmark = pytest.mark.slow
STAGES = {
    "evaluate heuristics online": "reports/tables/heuristics/online",
    "hindsight online": "reports/tables/hindsight/online",
    "evaluate agent plain": "reports/tables/agents/plain",
    "evaluate agent cloned": "reports/tables/agents/cloned",
    "evaluate transfer moved": "reports/tables/transfers/moved",
}


def carried_out(folder: Folder, stage: str, **more: str) -> dict[str, bytes]:
    """The outputs of a stage that begins without them."""
    out = STAGES[stage]
    shutil.rmtree(folder.root / out, ignore_errors=True)
    folder.run(sys.executable, "-m", "pipeline", *stage.split(), **more)
    return {name: found for name, found in bytes_of(folder.root).items() if name.startswith(out)}


def with_a_transfer(folder: Folder) -> None:
    """Two networks of scores, which serve any size, drawn and not trained, and a scenario to transfer them to."""
    pipeline = (sys.executable, "-m", "pipeline")
    rows = YAML(typ="safe").load(folder.root / "params.yaml")
    finetune = YAML(typ="safe").load(REPOSITORY / "params.yaml")["agents"]["deeprm3"]["finetune"]
    network = {"name": "scores", "hidden": 2}
    agent = rows["agents"]["plain"] | {"network": network, "finetune": finetune | {"loads": [60, 150]}}
    folder.edit(threads=2, scenarios__other=rows["scenarios"]["online"] | {"loads": [90]})
    folder.edit(transfers={"moved": {"agent": "scores", "scenario": "other"}})
    models = folder.root / "models" / "scores"
    for seed, name in ((2, "policy"), (1, "pretrained")):
        folder.edit(agents__scores=agent | {"pretrain": {"name": "none", "seed": seed}})
        folder.run(*pipeline, "pretrain", "scores")
        (models / "pretrained").rename(models / name)
    folder.run(*pipeline, "generate", "other")


@pytest.fixture(scope="module")
def serially(
    reproduced: tuple[Folder, str], tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> tuple[Folder, dict[str, dict[str, bytes]]]:
    """A repository with a transfer, whose threads order sums, and what its stages leave by themselves."""
    place = tmp_path_factory.mktemp("stages") / "copy"
    shutil.copytree(reproduced[0].root, place, symlinks=True)
    folder = Folder(place, environment)
    with_a_transfer(folder)
    shutil.rmtree(place / FOLDER, ignore_errors=True)  # hindsight has processes if nothing is said
    found = {stage: carried_out(folder, stage, PIPELINE_EXECUTOR="serial") for stage in STAGES}
    assert all(found.values())
    assert not (place / FOLDER).exists()
    return folder, found


@pytest.fixture(scope="module", params=["processes", "ray", "slurm"])
def place(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Two workers of a kind, as the environment of a stage."""
    if request.param != "slurm":
        yield {VARIABLE: f"{request.param}:2"}
        return
    if reason := why_not():
        pytest.skip(reason)
    with slurm(Cluster(nodes=2)) as cluster:
        yield {VARIABLE: "slurm:2@work", "SLURM_CONF": str(cluster.folder / "slurm.conf")}
        ended = cluster.jobcomp.read_text().splitlines()
        assert len(ended) == 2 * len(STAGES)
        assert all("JobState=COMPLETED" in line for line in ended)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_leaves_the_bytes_that_it_leaves_serially(
    stage: str, serially: tuple[Folder, dict[str, dict[str, bytes]]], place: dict[str, str]
) -> None:
    folder, wanted = serially
    tasks = folder.root / FOLDER
    shutil.rmtree(tasks, ignore_errors=True)
    assert carried_out(folder, stage, **place) == wanted[stage]
    assert list(tasks.iterdir()) == []  # it was carried out elsewhere, and what tasks found is gone
