"""The pipeline still accepts the parameter files of published results."""

from pathlib import Path

import pytest
from builders import REPOSITORY

from pipeline.core.config import MachinesScenario, load_params
from pipeline.problems import check

FILES = sorted((REPOSITORY / "docs" / "results").glob("*/params.yaml"))


def test_there_are_such_files() -> None:
    assert {file.parent.name for file in FILES} == {"controller", "deepk8s", "rlscheduler", "run-times"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_the_pipeline_takes_it(file: Path) -> None:
    params = load_params(file)
    check(params)
    assert set(params.scenarios) == {agent.scenario for agent in params.agents.values()}


def test_rlscheduler_learns_from_no_job_of_the_published_sequences() -> None:
    from pipeline.core.config import MachinesLog
    from pipeline.interactive.machines.rlscheduler_workload import SEQUENCE, STARTS

    published = {job for start in STARTS for job in range(start, start + SEQUENCE)}
    params = load_params(REPOSITORY / "docs" / "results" / "rlscheduler" / "params.yaml")
    for name, scenario in params.scenarios_of(MachinesScenario).items():
        assert isinstance(scenario.workload, MachinesLog), name
        assert scenario.workload.parts is not None, name
        for first, after in (*scenario.workload.parts.train, *scenario.workload.parts.validation):
            assert not published & set(range(first, after)), (name, first, after)
