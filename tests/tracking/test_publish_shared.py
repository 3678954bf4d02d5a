"""Stores that a team shares: MLflow over PostgreSQL and S3, written to by several clones at once."""

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from laid_out import LaidOut, snapshot
from servers import refusing
from shared_stores import in_bucket, mlflow, postgres, s3, why_no_postgres
from tracking_records import Records, environment

from pipeline.core.config import load_params
from pipeline.tracking import stage
from pipeline.tracking.publish import publish

pytestmark = pytest.mark.slow  # servers take half a minute to begin
needs_postgres = pytest.mark.skipif(bool(why_no_postgres()), reason=why_no_postgres())
CLONES, COMMON, OWN = 8, 12, 2
STAGES = 6


class Shared(NamedTuple):
    """Where the servers are."""

    tracking: str
    bucket: str


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    place = tmp_path_factory.mktemp("servers")
    with ExitStack() as servers:
        database, bucket = servers.enter_context(postgres()), servers.enter_context(s3(place))
        yield Shared(servers.enter_context(mlflow(database, bucket, place)), bucket)


def experiments(laid: LaidOut, first: int, names: list[str]) -> None:
    """Experiments that differ by their seed."""
    for seed, name in enumerate(names, first):
        laid.edit(lambda rows, seed=seed: rows.update(seed=seed))
        laid.lock()
        laid.experiment(name)


def clone(laid: LaidOut, place: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What all have, some experiments of its own, and the record of a stage that its dead server missed."""
    shutil.copytree(laid.root, place, symlinks=True)
    own = object.__new__(LaidOut)
    own.root = place
    with monkeypatch.context() as there, refusing() as nowhere:
        there.chdir(place)
        experiments(own, 1000 * number, [f"of{number}no{one}" for one in range(OWN)])
        own.edit(lambda rows: rows.update(seed=1000 * number + 500))
        there.setenv("MLFLOW_TRACKING_URI", nowhere)
        there.setenv("DVC_EXP_NAME", f"spooled{number}")
        with stage("finetune", "deeprm", load_params()) as run:
            run.metrics({"return": float(number)}, step=7)
            run.model(Path("models/deeprm/policy"))
        own.git("checkout", "--quiet", "--", "params.yaml")


def publishing(place: Path, shared: Shared) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "pipeline", "publish", "--all"]
    told = environment(MLFLOW_TRACKING_URI=shared.tracking)
    return subprocess.Popen(command, cwd=place, env=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def of_stage(seen: dict[str, Any], name: str) -> tuple[Any, ...]:
    """What does not differ between pipelines: how it ended, names of params, points, inputs, files, models."""
    status, params, _, points, inputs, files, models = seen[name]
    return status, sorted(params), points, inputs, files, models


@needs_postgres
def test_eight_clones_publish_at_once_nothing_twice_and_nothing_lost(
    laid: LaidOut, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, shared: Shared
) -> None:
    root = laid.root
    list(publish([], everything=False))  # into a database of its own: what each pipeline run should be
    reference = snapshot(root, exact=False)
    (root / "mlflow.db").unlink()
    experiments(laid, 2, [f"common{one}" for one in range(COMMON)])
    places = [tmp_path_factory.mktemp("clones") / "clone" for _ in range(CLONES)]
    for number, place in enumerate(places, 1):
        clone(laid, place, number, monkeypatch)
    processes = [publishing(place, shared) for place in places]
    said = [process.communicate(timeout=3000)[0] for process in processes]
    sys.stderr.write("\n".join(said))
    assert [process.returncode for process in processes] == [0] * CLONES
    assert [f"{line.count('spooled: finetune@deeprm')} spooled" for line in said] == ["1 spooled"] * CLONES
    restored = Counter(word for lines in said for word in lines.split(": ") if "restored" in word or "reused" in word)
    sys.stderr.write(f"{restored}\n")

    seen = snapshot(shared.tracking, exact=False)  # which refuses a stage that a pipeline run has twice
    pipelines = [name.removeprefix("/") for name in seen if name.startswith("/")]
    kinds = Counter(name.rpartition("-")[0].rstrip("0123456789") for name in pipelines)
    assert kinds == {
        "common": COMMON,
        **{f"of{number}no": OWN for number in range(1, CLONES + 1)},
        "spooled": CLONES,
        "repro": 1,
    }
    (own,) = [name.removeprefix("/") for name in reference if name.startswith("/")]
    stages = [name.rpartition("/")[2] for name in reference if name.startswith(f"{own}/")]
    assert len(stages) == STAGES
    for name in (name for name in pipelines if not name.startswith("spooled")):
        assert of_stage(seen, f"/{name}") == of_stage(reference, f"/{own}")
        for one in stages:
            assert of_stage(seen, f"{name}/{one}") == of_stage(reference, f"{own}/{one}")
    for number in range(1, CLONES + 1):
        (kept,) = [name for name in seen if name.startswith(f"spooled{number}-")]
        assert seen[kept][3]["return"] == [(7, float(number))]
    records = Records(shared.tracking)
    assert len(records.runs()) == (len(pipelines) - CLONES) * STAGES + CLONES
    assert len(records.runs()) + len(pipelines) >= 200
    assert [model.name for model in records.client.search_registered_models()] == ["scheduler-deeprm"]  # and no lease
    assert len(records.client.search_model_versions("name = 'scheduler-deeprm'")) == 1
    assert any(name.endswith("slowdown_online.png") for name in in_bucket(shared.bucket))
