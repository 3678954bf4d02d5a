"""A network next to a real Slurm cluster: it orders machines that it knows, and leaves others to Slurm's own order."""

import shutil
from pathlib import Path

import pytest
from builders import REPOSITORY
from steered import steered

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import slurm, why_not
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.problems.machines.agents.learning import LEARNING
from pipeline.stages import generate

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]
AGENT = "deepk8s_ppo"  # of five machines with 10 CPUs and 64 GiB


@pytest.fixture
def model(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its network, before it learns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    shutil.copy(REPOSITORY / "params.yaml", tmp_path)
    generate.run(params, "machines")
    network = LEARNING.untrained(params, AGENT, LEARNING.task(params, AGENT, params.agents[AGENT].finetune))
    storage.write_model(tmp_path / "model", LEARNING.model(params, AGENT, network))
    return tmp_path / "model"


def test_a_network_orders_machines_that_it_knows(model: Path, tmp_path: Path) -> None:
    with slurm(Cluster(nodes=5, cpus=10, mib=65_536)) as cluster, steered(cluster, tmp_path / "steering") as one:
        one.slurm.submit("sleep 600", "--time=10", "--nodes=5", "--exclusive")
        waiting = {
            int(one.slurm.submit("sleep 1", f"--time={k}", "--cpus-per-task=10", "--mem=1G")) for k in range(1, 5)
        }
        one.steer(policy=str(model))
        one.slurm.until(lambda: set(one.in_order()) == waiting, "factors", 120)
        last = one.journal("tick")[-1]["pools"][0]
        assert (last["policy"], "fell_back" in last) == (str(model), False)


def test_a_network_leaves_others_to_slurm(model: Path, tmp_path: Path) -> None:
    with slurm(Cluster(nodes=4, cpus=1)) as cluster, steered(cluster, tmp_path / "steering") as one:
        one.busy()
        one.waits(5), one.waits(1)
        controller = one.steer("--ticks", "3", policy=str(model))
        one.ended(controller)
        (pool,) = one.journal("tick")[-1]["pools"]
        assert pool["fell_back"] is True
        assert pool["why"] == "the policy refuses: trained for 5 machines; here: 4"
        assert set(one.factors().values()) == {0}
