"""Stores that a team shares, each a real temporary server: PostgreSQL, S3, and MLflow on both."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ruamel.yaml import YAML
from servers import HOST, free_port
from tracking_records import REPOSITORY, environment

PLACES = ["/usr/bin", "/usr/local/bin", *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))]
OTHERS = ("postgres", "nobody")  # users that can run PostgreSQL when root, which it refuses, runs the tests
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
BUCKET = "shared"
CONTAINERS = REPOSITORY / "docs" / "operate" / "containers"
BEGUN_S = 600  # on a busy machine


def program(name: str) -> str | None:
    """Return the path of a PostgreSQL program; Debian keeps these out of PATH."""
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *PLACES]))


def why_no_postgres() -> str:
    """Return why PostgreSQL cannot start here, or "" if it can."""
    missing = [name for name in ("initdb", "postgres") if program(name) is None]
    return f"no {', '.join(missing)} (Debian: apt-get install postgresql)" if missing else ""


@contextmanager
def process(
    words: Sequence[object], log: Path, answers: Callable[[], bool], stop: int = signal.SIGTERM, **how: object
) -> Iterator[None]:
    """Run a server from its first answer to the end of the body; it and its workers form a process group."""
    with log.open("wb") as said:
        server = subprocess.Popen(
            [str(word) for word in words], stdout=said, stderr=subprocess.STDOUT, start_new_session=True, **how
        )  # type: ignore[call-overload]
    try:
        until = time.monotonic() + BEGUN_S
        while not answers():
            assert server.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.1)
        yield
    finally:
        _end(server, stop)


def _end(server: subprocess.Popen[bytes], stop: int) -> None:
    for number in (stop, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, number)
        with suppress(subprocess.TimeoutExpired):
            server.wait(20)
            return


@contextmanager
def postgres() -> Iterator[str]:
    """Provide the address of an empty database, reachable only through a socket in a separate folder."""
    user = next((name for name in OTHERS if _is_user(name)), None) if os.geteuid() == 0 else None
    place = Path(mkdtemp(prefix="postgres-", dir="/tmp"))  # a socket's path has at most 107 characters
    if user:
        shutil.chown(place, user)
    data = place / "data"
    try:
        words = [program("initdb"), "-D", data, "-U", "mlflow", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(list(map(str, words)), check=True, capture_output=True, user=user, cwd=place)
        served = [program("postgres"), "-D", data, "-k", place, "-c", "listen_addresses=", "-c", "fsync=off"]
        with process(served, place / "log", lambda: _takes(place), signal.SIGINT, user=user, cwd=place):
            yield f"postgresql://mlflow@/postgres?host={place}"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _is_user(name: str) -> bool:
    import pwd

    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


def _takes(place: Path) -> bool:
    import psycopg

    try:
        psycopg.connect(host=str(place), user="mlflow", dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def s3(place: Path, bucket: str = BUCKET) -> Iterator[str]:
    """Provide the address of an S3 with one empty bucket, or with none."""
    port = free_port()
    address = f"http://{HOST}:{port}"
    words = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", port]
    with process(words, place / "s3.log", lambda: _answers(f"{address}/moto-api/")):
        if bucket:
            _client(address).create_bucket(Bucket=bucket)
        yield address


def in_bucket(address: str) -> list[str]:
    """Names of all objects in the bucket."""
    pages = _client(address).get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return [one["Key"] for page in pages for one in page.get("Contents", [])]


def _client(address: str) -> Any:
    import boto3

    named = {key.lower(): value for key, value in KEYS.items() if key != "AWS_DEFAULT_REGION"}
    return boto3.client("s3", endpoint_url=address, region_name=KEYS["AWS_DEFAULT_REGION"], **named)


@contextmanager
def mlflow(database: str, bucket: str, place: Path) -> Iterator[str]:
    """Run MLflow's server on a database and an S3, started as in compose.yaml; its clients need no keys."""
    port, told = free_port(), composed()["services"]["mlflow"]
    words = [*told["entrypoint"], *told["command"]]
    words[words.index("--host") + 1], words[words.index("--port") + 1] = HOST, str(port)
    given = {"AWS_ENDPOINT_URL": bucket, "MLFLOW_BACKEND_STORE_URI": database, "PGPASSWORD": "not asked for", **KEYS}
    assert set(told["environment"]) == set(given)
    own = environment(MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false", MLFLOW_DISABLE_TELEMETRY="true", **given)
    address = f"http://{HOST}:{port}"
    command = [sys.executable, "-m", *words]
    with process(command, place / "mlflow.log", lambda: _answers(f"{address}/health"), env=own, cwd=place):
        yield address


def composed() -> dict[str, Any]:
    """The content of compose.yaml, with its merge keys resolved."""
    return json.loads(json.dumps(YAML(typ="safe").load(CONTAINERS / "compose.yaml")))  # type: ignore[no-any-return]


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except OSError:
        return False
    return True
