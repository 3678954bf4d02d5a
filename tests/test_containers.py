"""The image and compose.yaml, as far as possible without a daemon: parsed, compared with the project, started."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.request import urlopen

import pytest
from builders import REPOSITORY
from pathspec import GitIgnoreSpec
from ruamel.yaml import YAML
from servers import HOST, free_port
from shared_stores import BUCKET, CONTAINERS, KEYS, composed, in_bucket, process, s3

from pipeline.cli import app
from pipeline.serving.guard import FREE

COMPOSE = CONTAINERS / "compose.yaml"
SERVICES = composed()["services"]
SECRET = re.compile(r"PASSWORD|SECRET|ACCESS_KEY|TOKEN")
FROM_ENV = re.compile(r"\$\{(\w+):\?[^}]+\}")
PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+[\w.-]*")


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile and its arguments, on one line."""
    lines = (line for line in (CONTAINERS / "Dockerfile").read_text().splitlines() if not line.startswith("#"))
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


IMAGE = instructions()


def of(word: str) -> list[str]:
    return [rest for instruction, rest in IMAGE if instruction == word]


def copied() -> list[str]:
    return [source for rest in of("COPY") for source in rest.split()[:-1]]


def health() -> list[str]:
    (check,) = of("HEALTHCHECK")
    return [sys.executable, *json.loads(check.partition("CMD ")[2])[1:]]


# The image


def test_the_image_does_not_run_as_root() -> None:
    last = max(number for number, (word, _) in enumerate(IMAGE) if word in ("RUN", "COPY"))
    assert [(number > last, rest) for number, (word, rest) in enumerate(IMAGE) if word == "USER"] == [(True, "65532")]
    assert any("useradd" in rest and "--uid 65532" in rest for rest in of("RUN"))


def test_the_image_is_of_the_python_and_the_torch_that_are_tested_and_names_no_host() -> None:
    told = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    base = dict(rest.split("=", 1) for rest in of("ARG") if "=" in rest)["BASE"]
    version = re.fullmatch(r"python:(3\.\d+)-slim-bookworm", base)
    assert version
    assert told["requires-python"] == f">={version[1]}"
    lock = (REPOSITORY / "requirements.lock").read_text().splitlines()
    (torch,) = [line for line in lock if line.startswith("torch==")]
    installs = [rest for rest in of("RUN") if "pip install" in rest]
    assert installs[0] == f"python -m pip install {torch}"  # first, and on its own
    assert not re.search(r"https?://(?!127\.0\.0\.1)", (CONTAINERS / "Dockerfile").read_text())


def test_what_the_image_installs_is_pinned() -> None:
    (install,) = [rest for rest in of("RUN") if "tomllib" in rest]
    named = subprocess.run(
        [sys.executable, *shlex.split(install.partition(" > ")[0])[1:]],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    names = [re.split(r"[\[=<>~]", one)[0].lower().replace("_", "-") for one in named]
    lock = {line.partition("==")[0].lower().replace("_", "-") for line in
            (REPOSITORY / "requirements.lock").read_text().splitlines() if "==" in line}  # fmt: skip
    assert {"numpy", "torch", "mlflow", "fastapi", "psycopg", "boto3", "dvc-s3"} <= set(names) <= lock
    assert "--constraint requirements.lock" in install


def test_what_is_copied_is_there_and_is_not_ignored() -> None:
    lines = (line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if not line.startswith("#"))
    # Docker's patterns start at the root, git's only with a leading slash.
    ignored = GitIgnoreSpec.from_lines(re.sub(r"^(!?)(?!\*\*)", r"\1/", line) for line in lines)
    assert len(copied()) == 5
    for source in copied():
        path = REPOSITORY / source
        files = [source] if path.is_file() else [f"{source}/__main__.py", f"{source}/cli/__init__.py"]
        assert path.exists()
        assert [name for name in files if ignored.match_file(name)] == []
    kept = (
        "data/log",
        ".git/config",
        "models/deeprm/policy",
        "docs/operate/containers/.env",
        "pipeline/__pycache__/a.nbi",
    )
    assert [name for name in kept if not ignored.match_file(name)] == []


def test_the_images_command_and_its_health_are_what_there_is() -> None:
    known_options(json.loads(of("CMD")[0]))
    asked = re.search(r"http://127\.0\.0\.1:(\d+)(/[\w/]+)", " ".join(health()))
    assert asked
    assert asked[2] in FREE  # which needs no token, even where the service asks for one
    assert [asked[1]] == of("EXPOSE") == [str(option("serve", "port"))]


def known_options(words: list[str]) -> None:
    name, *rest = words
    options = {name for parameter in command(name).params for name in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= options


def command(name: str) -> "click.Command":  # type: ignore[name-defined]  # noqa: F821
    from typer.main import get_command

    return get_command(app).commands[name]  # type: ignore[attr-defined]


def option(name: str, parameter: str) -> object:
    return next(one.default for one in command(name).params if one.name == parameter)


# compose.yaml


def checked(path: Path) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(words, check=False, capture_output=True, text=True)


def test_composes_schema_takes_it_and_refuses_what_is_wrong(tmp_path: Path) -> None:
    done = checked(COMPOSE)
    assert done.returncode == 0, done.stdout
    (tmp_path / "compose.yaml").write_text(COMPOSE.read_text().replace("read_only: true", "readonly: true"))
    assert "readonly" in checked(tmp_path / "compose.yaml").stdout


def no_compose() -> str:
    if shutil.which("docker") is None:
        return "no docker"
    done = subprocess.run(["docker", "compose", "version"], check=False, capture_output=True)
    return "" if done.returncode == 0 else "docker has no compose here"


@pytest.mark.skipif(bool(no_compose()), reason=no_compose())
def test_compose_itself_takes_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("".join(f"{name}=x{number}\n" for number, name in enumerate(wanted())))
    words = ["docker", "compose", "--file", str(COMPOSE), "--env-file", str(tmp_path / ".env"), "config"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(YAML(typ="safe").load(done.stdout)["services"]) == set(SERVICES)


def wanted() -> list[str]:
    return sorted(set(FROM_ENV.findall(COMPOSE.read_text())))


def test_no_secret_is_in_the_file_and_the_example_names_them_without_values() -> None:
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            assert not SECRET.search(name) or FROM_ENV.fullmatch(value), name
    lines = (CONTAINERS / "example.env").read_text().splitlines()
    assert sorted(line for line in lines if not line.startswith("#")) == [f"{name}=" for name in wanted()]
    assert "/docs/operate/containers/.env" in (REPOSITORY / ".gitignore").read_text().splitlines()


def test_ports_are_of_loopback_and_images_are_pinned() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 4
    assert all(re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in ports)
    for service in SERVICES.values():
        assert PINNED.fullmatch(service["image"])
        assert service["security_opt"] == ["no-new-privileges:true"]
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    assert SERVICES["service"]["image"] == f"deeprm:{version}"


def test_who_waits_for_another_waits_for_what_that_one_tells() -> None:
    for service in SERVICES.values():
        for name, told in service.get("depends_on", {}).items():
            healthy = "test" in SERVICES[name].get("healthcheck", {}) or "entrypoint" not in SERVICES[name]
            ends = SERVICES[name]["restart"] == "no"
            assert told["condition"] == ("service_completed_successfully" if ends else "service_healthy")
            assert ends or healthy  # it ends, or its own check or that of its image passes


def test_what_is_mounted_is_there() -> None:
    volumes = [volume.split(":") for service in SERVICES.values() for volume in service.get("volumes", [])]
    files = [source for source, *_ in volumes if source.startswith(".")]
    assert len(files) == 3
    assert all((CONTAINERS / source).exists() for source in files)
    assert {source for source, *_ in volumes if not source.startswith(".")} == set(composed()["volumes"])
    (compiled,) = [target for source, target, *_ in volumes if source == "compiled"]
    assert f"NUMBA_CACHE_DIR={compiled}" in " ".join(of("ENV"))


def test_the_services_command_is_one_that_there_is() -> None:
    known_options(SERVICES["service"]["command"])


def test_prometheus_asks_the_service_and_reads_its_rules() -> None:
    told = YAML(typ="safe").load(CONTAINERS / "prometheus.yaml")
    (job,) = told["scrape_configs"]
    assert f'up{{job="{job["job_name"]}"}}' in (CONTAINERS.parent / "alerts.yaml").read_text()
    assert job["static_configs"] == [{"targets": ["service:8765"]}]
    mounted = [volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]]
    assert set(told["rule_files"]) <= set(mounted)
    token = SERVICES["service"]["command"][-1]
    assert job["authorization"]["credentials_file"] == token == f"/run/secrets/{SERVICES['prometheus']['secrets'][0]}"


# Its commands, without containers


@pytest.mark.slow
def test_the_bucket_is_made_once(tmp_path: Path) -> None:
    told = SERVICES["bucket"]
    with s3(tmp_path, bucket="") as address:
        environment = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": address}
        assert set(told["environment"]) == {*KEYS, "AWS_ENDPOINT_URL"}
        for _ in range(2):
            subprocess.run([sys.executable, "-c", *told["command"]], check=True, env=environment)
        assert in_bucket(address) == []
    assert f"s3://{BUCKET}/" in " ".join(SERVICES["mlflow"]["command"])


@pytest.mark.slow
def test_the_service_begins_from_what_is_copied_and_is_healthy(tmp_path: Path, environment: dict[str, str]) -> None:
    place, token, port = tmp_path / "deeprm", tmp_path / "token", str(free_port())
    for source in copied():
        target = place / source
        target.parent.mkdir(parents=True, exist_ok=True)
        path = REPOSITORY / source
        shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__")) if path.is_dir() else shutil.copy(
            path, target
        )
    token.write_text("a token of many letters")
    told = {"/run/secrets/service_token": str(token), "0.0.0.0": HOST}
    words = [told.get(word, word) for word in SERVICES["service"]["command"]]
    words = [sys.executable, *json.loads(of("ENTRYPOINT")[0])[1:], *words, "--port", port]
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    check = [word.replace(":8765/", f":{port}/") for word in health()]

    def answers() -> bool:
        return subprocess.run(check, check=False, capture_output=True).returncode == 0

    with process(words, tmp_path / "said", answers, cwd=place, env=own):
        with pytest.raises(OSError, match="401"):
            urlopen(f"http://{HOST}:{port}/v1/policy", timeout=10)
        assert json.loads(urlopen(f"http://{HOST}:{port}/v1/health", timeout=10).read())
