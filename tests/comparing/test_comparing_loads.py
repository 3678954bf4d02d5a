"""What test jobsets ask of each resource, worked by hand."""

import numpy as np
import pandas as pd
import pytest

from pipeline.comparing.comparing import loads_markdown, loads_of, short
from pipeline.core.schemas.tables import LOADS

# Two jobsets of two jobs: arrivals 0 and 5, 0 and 15, so that their gaps are 5 and 15 and they take 10 and 30.
JOBS = pd.DataFrame(
    {
        "load": 90,
        "jobset": [0, 0, 1, 1],
        "arrival": [0.0, 5.0, 0.0, 15.0],
        "duration": [4.0, 4.0, 8.0, 16.0],
        "cpu": [2, 2, 1, 1],
        "memory": [1, 1, 1, 1],
    }
)


def test_a_load_is_told_of_each_resource_as_it_is_and_not_as_their_mean() -> None:
    found = LOADS.validate(loads_of("hpc", JOBS, {"cpu": 1, "memory": 4}, None, wanted=5))
    assert found["resource"].tolist() == ["cpu", "memory"]
    assert found["percent"].tolist() == pytest.approx([100 * 40 / 40, 100 * 32 / 160])
    assert loads_markdown(found).splitlines()[-1] == "| hpc | 90 | 2 of 5 | cpu 100 %, memory 20 % |"


def test_jobs_on_several_nodes_hold_as_much_on_each() -> None:
    found = loads_of("hpc", JOBS.assign(nodes=[1, 3, 1, 1]), {"cpu": 1}, None, wanted=2)
    assert found["percent"].tolist() == pytest.approx([100 * 56 / 40])


def test_where_arrivals_take_a_known_time_it_counts_and_not_the_first_and_last_of_them() -> None:
    found = loads_of("online", JOBS, {"cpu": 1}, 50, wanted=2)
    assert found["percent"].tolist() == pytest.approx([100 * 40 / 100])


def test_jobs_that_arrive_all_at_once_have_no_load() -> None:
    found = LOADS.validate(loads_of("offline", JOBS.assign(arrival=0), {"cpu": 1}, None, wanted=2))
    assert np.isnan(found["percent"]).all()
    assert loads_markdown(found).splitlines()[-1] == "| offline | 90 | 2 | cpu all at once |"


def test_jobsets_that_a_log_had_no_room_for_are_told_once() -> None:
    found = loads_of("hpc", JOBS, {"cpu": 1, "memory": 4}, None, wanted=5)
    assert short(found) == ["hpc, load 90: 2 test jobsets; 5 were asked for"]
    assert short(found.assign(wanted=2)) == []
