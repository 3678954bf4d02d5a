"""The canary's windows are those of arrival, so that what a policy keeps waiting is compared with what it prefers."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from pipeline.comparing.resampling import seen_at
from pipeline.core.config import Params
from pipeline.core.types import Json
from pipeline.stages.serve import heuristic
from pipeline.steering.canary import judge
from pipeline.steering.journal import JOURNAL, Journal

CASES = Path(__file__).parent / "cases"
DIGEST = heuristic("sjf").digest
UNITS: dict[str, Json] = {"cpu": 4.0, "memory": 0.5, "gpu": 0.0}


def ended(folder: Path, *rows: tuple[str, int, float, float, Mapping[str, Json]]) -> None:
    """Jobs (kind, number, run, limit, more) of one node, all of which came at 0."""
    journal = Journal(folder)
    journal.add("begin", 0.0, mode="order", policy="sjf", digest=DIGEST)
    journal.add("pool", 0.0, partitions=["work"], machines={"n1": UNITS})
    journal.add("tick", 0.0)
    for kind, job, run, limit, more in rows:
        start = {"start": 500.0} if kind == "ran" else {"start": None}
        journal.add(kind, 500.0 + run, job=job, partition="work", submit=0.0, eligible=0.0, end=500.0 + run,
                    limit_s=limit, nodes=1, units=UNITS, **start, **more)  # fmt: skip
    journal.close()


def test_jobs_that_wait_longer_are_in_the_window_of_those_that_came_with_them(tmp_path: Path) -> None:
    # Limits are the wrong way round. By number, each window is two jobs of 10 s (one starts, EASY reserves for the
    # next), then one of 10 s and one of 100 s. In order of arrival they wait 0, 10, 20 and 30 s; under the policy the
    # last goes before the third, and they wait 0, 10, 120 and 20 s: (37.5 - 15) / 37.5 = 0.6. Rows: by end.
    first = ((1, 10, 5), (2, 10, 5), (5, 10, 5), (6, 10, 5))
    rest = ((4, 100, 10), (8, 100, 10), (3, 10, 100), (7, 10, 100))
    ended(tmp_path, *(("ran", job, run, limit, {}) for job, run, limit in (*first, *rest)))
    assert judge(tmp_path, "machines", "sjf", DIGEST, 4, 1.0) == (2, pytest.approx(0.6), False)


def test_jobs_shorter_than_a_tick_count_and_those_that_could_not_start_do_not(tmp_path: Path) -> None:
    # Gone between the readings at 0 and 20: job 3 counts as one of 10 s, and the window is as above; 5 could not start.
    gone = ("left", 3, -480.0, 100.0, {"could_start": True})
    held = ("left", 5, -480.0, 100.0, {"could_start": False})
    rest = (("ran", job, run, limit, {}) for job, run, limit in ((1, 10.0, 5.0), (2, 10.0, 5.0), (4, 100.0, 10.0)))
    ended(tmp_path, gone, held, *rest)
    assert judge(tmp_path, "machines", "sjf", DIGEST, 4, 1.0) == (1, pytest.approx(0.6), False)
    assert judge(tmp_path, "machines", "sjf", DIGEST, 5, 1.0).windows == 0


def test_a_window_waits_for_the_jobs_that_came_before(tmp_path: Path) -> None:
    still = {"open": 0.0}  # a job that came at 0 is still there
    ended(tmp_path, ("ran", 1, 10.0, 100.0, still), ("ran", 2, 10.0, 100.0, still))
    assert judge(tmp_path, "machines", "sjf", DIGEST, 2, 1.0).windows == 0
    ended(tmp_path, ("ran", 3, 10.0, 100.0, {"open": 1.0}))
    assert judge(tmp_path, "machines", "sjf", DIGEST, 2, 1.0).windows == 1


@pytest.mark.parametrize("window", [10, 20, 50])
def test_a_policy_that_is_a_fifth_worse_is_seen_to_be(tmp_path: Path, window: int) -> None:
    """Recorded with a Slurm: 2-second jobs with long limits, 10-second jobs with short ones, all at about one time.

    As one window, the 145 jobs that were seen to run wait 148.3 s under the policy and 118.0 s by arrival: 20.5 %.
    """
    (tmp_path / JOURNAL).write_bytes(gzip.decompress((CASES / "canary_journal.jsonl.gz").read_bytes()))
    found = judge(tmp_path, "machines", "sjf", "89bdfc55ace5512b7f9b2b502c1cca18", window, 1.0)
    assert found.windows == 200 // window
    assert 0.17 < found.regret < 0.3
    assert found.worse == (window == 10)


def test_the_documents_say_after_how_many_windows_a_regret_is_seen(params: Params) -> None:
    assert params.gate is not None
    rules = params.gate.watch
    found = [
        seen_at(np.full((1, 100), regret), np.ones(1), rules.tolerance, rules.level, rules.bound)
        for regret in (0.05, 0.1, 0.2, 0.25)
    ]
    assert found == [57, 24, 12, 10]
    page = " ".join((Path(__file__).parents[2] / "docs/how-to/steer-slurm.md").read_text().split())
    assert "a regret of 5 % is seen after 57 windows, 10 % after 24, 20 % after 12, 25 % and more after 10" in page
