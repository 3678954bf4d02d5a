"""A stored controller, jobsets and job tables of the small scenario of user groups, for tests of user commands."""

from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.problems.groups.agents.learning import model
from pipeline.problems.groups.agents.networks import q_network
from pipeline.problems.groups.agents.networks.features import past
from pipeline.problems.groups.env.nouns import Jobs
from pipeline.problems.groups.env.storage import write_jobsets
from pipeline.problems.groups.env.workload.source import cluster_of, draw_jobs

HEAD = "job,arrival,duration,cpu,memory,group,queue"
# Equal shares are 4 cpu and 3 memory. In group 0, b waits for a until 4; c in group 1 starts at once.
TABLE = f"{HEAD}\na,0,4,4,1,0,short\nb,1,2,4,1,0,short\nc,1,2,4,3,1,long\n"


def drawn(params: Params, load: int, count: int) -> list[Jobs]:
    """Jobsets of scenario `shared`."""
    row = params.groups_scenario("shared")
    assert row.workload.name == "sinusoidal"
    return [draw_jobs(row.workload, row, load, np.random.default_rng([load, k])) for k in range(count)]


def write_controller(params: Params, folder: Path) -> q_network.QNetwork:
    """Store an untrained controller of agent `mine`, and return its network."""
    config, cluster = params.agent("mine").network, cluster_of(params.groups_scenario("shared"))
    assert config.name == "q_network"
    network = q_network.build(config, cluster, past({60: drawn(params, 60, 2)}, cluster), seed=3)
    storage.write_model(folder, model(params, "mine", network))
    return network


def write_test_jobsets(params: Params) -> dict[int, list[Jobs]]:
    """Write test jobsets of two loads, and return them."""
    jobsets = {60: drawn(params, 60, 3), 120: drawn(params, 120, 3)}
    resources = params.groups_scenario("shared").resources
    write_jobsets(storage.jobsets_folder("shared"), "test", jobsets, resources)
    return jobsets
