"""The page and the JSON about when jobs start."""

import json
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core import storage
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.serving.guard import bound, server_of
from pipeline.stages import when_service
from pipeline.stages.when import NoJobWaitsError
from pipeline.stages.when_service import Latest, application, serve


def row(job: int, median: float) -> dict[str, Json]:
    ends = {
        f"{end}_s": by * median for end, by in {"low80": 0, "low50": 0.5, "median": 1, "high50": 2, "high80": 4}.items()
    }
    return {"job": job, "waited_s": 90.0, "processors": 16.0, **ends, "by_limits_s": 1.0}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A log that changes, with prepared answers; each request for one is recorded."""
    (tmp_path / "params.yaml").write_text("")
    (tmp_path / "log").write_text("")
    seen: list[str] = []

    def run(params: object, site: str, jobs: list[int], time: str | None) -> dict[str, Json]:
        seen.append(site)
        if (tmp_path / "log").read_text() in ("idle", "bad"):
            raise {"idle": NoJobWaitsError, "bad": UserError}[(tmp_path / "log").read_text()]("mine: said")
        rows = [row(4711, 7_200.0 * len(seen)), row(12, 30.0)]
        return {"site": site, "now_s": 5.0, "calibrated": True, "own_waits": False, "jobs": list[Json](rows)}

    monkeypatch.setattr(when_service, "run", run)
    monkeypatch.setattr(when_service, "load_params", lambda: None)
    monkeypatch.setattr(when_service, "PARAMS_FILE", tmp_path / "params.yaml")
    monkeypatch.setattr(storage, "scenario_log", lambda site: tmp_path / "log")
    return seen


@pytest.fixture
def address(asked: list[str]) -> Iterator[str]:
    with bound("127.0.0.1", 0) as where:
        server = server_of(application(Latest("mine")))
        running = threading.Thread(target=server.run, kwargs={"sockets": [where]})
        running.start()
        yield f"http://127.0.0.1:{where.getsockname()[1]}"
        server.should_exit = True
        running.join()


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=20) as found:
        return str(found.read().decode())


def test_one_job_or_all_are_answered(address: str) -> None:
    whole = json.loads(read(f"{address}/when.json"))
    assert json.loads(read(f"{address}/when.json?job=")) == whole  # an empty field on the page
    assert [one["job"] for one in whole["jobs"]] == [4711, 12]
    assert json.loads(read(f"{address}/when.json?job=12"))["jobs"] == [row(12, 30.0)]
    page = re.sub(r"<[^>]+>", " ", read(f"{address}/?job=4711"))
    assert "4711 16 1.5 min 2.0 h 1.0 h to 4.0 h 0 s to 8.0 h" in " ".join(page.split())
    assert "12 16" not in " ".join(page.split())
    assert "the log records no waits" in page
    assert "not calibrated" not in page


@pytest.mark.parametrize(("query", "status"), [("job=13", 404), ("job=x", 422)])
def test_a_job_that_does_not_wait_is_an_error(address: str, query: str, status: int) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        read(f"{address}/?{query}")
    assert caught.value.code == status


def test_the_answer_is_renewed_when_the_log_has_changed(address: str, asked: list[str], tmp_path: Path) -> None:
    for _ in range(3):
        first = json.loads(read(f"{address}/when.json?job=4711"))["jobs"][0]["median_s"]
    assert (first, len(asked)) == (7_200.0, 1)
    os.utime(tmp_path / "log", (1, 1))
    assert json.loads(read(f"{address}/when.json?job=4711"))["jobs"][0]["median_s"] == 14_400.0
    (tmp_path / "log").write_text("idle")
    assert json.loads(read(f"{address}/when.json"))["jobs"] == []
    assert "No job waits." in read(f"{address}/")
    (tmp_path / "log").write_text("bad")
    os.utime(tmp_path / "log", (2, 2))
    with pytest.raises(urllib.error.HTTPError) as caught:
        read(f"{address}/")
    assert (caught.value.code, json.load(caught.value)["detail"]) == (503, "mine: said")
    (tmp_path / "log").unlink()
    with pytest.raises(urllib.error.HTTPError, match="503"):
        read(f"{address}/")


def test_an_unknown_site_is_refused_before_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"params.yaml: sites: unknown 'nosite'"):
        serve("nosite", 0)
