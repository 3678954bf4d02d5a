"""The recipe of an objective, in its own file: it alone changes compiled code, which compiles for a minute."""

import json
import sys
from pathlib import Path

import pytest
from recipe_copies import SMALL, Copy
from ruamel.yaml import YAML

# One unit, jobs of 1 and 2 steps that arrive at once: two of them are there in step 0, and one in steps 1 and 2.
TWO_JOBS = """
import numpy as np
from pipeline.core.types import keys
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from tests.oracles.pool import Timestep
from pipeline.simulation.rollout import play

jobs, cluster = JobSet(np.array([0, 0]), np.array([1, 2]), np.array([[1], [1]])), Cluster((1,), 5, 2, 0, False)
plain, compiled = Timestep(jobs, cluster, 9, "crowding"), Batched(batch([jobs]), cluster, 9, "crowding")
for simulator in (plain, compiled):
    play(simulator, HEURISTICS["sjf"], keys(1, np.zeros(1, dtype=int), np.zeros(1, dtype=int)))
print(plain.rewards, compiled.rewards[0, :3].tolist())
"""
ONE_UPDATE = "{name: reinforce, recipe: ours, loads: [130], updates: 1, jobsets: 2, episodes: 2, validate_every: 1}"


@pytest.mark.slow
def test_a_new_objective_is_learned(tmp_path: Path, warm_environment: dict[str, str]) -> None:
    copy = Copy(tmp_path / "copy", "objective", warm_environment)
    assert copy.run(sys.executable, "-c", TWO_JOBS) == "[-4.0, -1.0, -1.0] [-4.0, -1.0, -1.0]\n"
    copy.agent("deeprm", objective="crowding", finetune=YAML().load(ONE_UPDATE))
    copy.edit(jobsets=SMALL)
    copy.stages("log", "generate online", "pretrain deeprm", "finetune deeprm")
    card = json.loads((copy.root / "models" / "deeprm" / "policy" / "policy.json").read_text())
    assert card["objective"] == "crowding"
