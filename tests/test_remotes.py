"""Data shared through a remote, as docs/remotes.md describes: a folder, and S3 served by a server of the test."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from builders import REPOSITORY
from repositories import Folder, bytes_of, ran
from ruamel.yaml import YAML

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
LOG = ("data/log", "data/policies")  # links or notes, never cached


class Remote:
    """The address of a remote, and the settings that DVC needs for it."""

    def __init__(self, url: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.url = url
        self.settings = settings
        self.environment = environment

    def name_in(self, folder: Folder) -> None:
        folder.dvc("remote", "add", "--local", "--default", "shared", self.url)
        for key, value in self.settings.items():
            folder.dvc("remote", "modify", "--local", "shared", key, value)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    boto3, moto_server = pytest.importorskip("boto3"), pytest.importorskip("moto.server")
    for key in [key for key in os.environ if key.startswith("AWS_")]:
        monkeypatch.delenv(key)
    server = moto_server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    try:
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="shared")
        yield Remote("s3://shared/deeprm", {"endpointurl": endpoint}, KEYS)
    finally:
        server.stop()


def uploads(folder: Folder, remote: Remote) -> list[str]:
    """Return DVC's list of files that are not in the remote."""
    status = json.loads(folder.dvc("data", "status", "--not-in-remote", "--json", **remote.environment))
    return [name.rstrip("/") for name in status.get("not_in_remote", [])]


def goes_round(folder: Folder, remote: Remote, place: Path, environment: Mapping[str, str]) -> None:
    """Push from one clone, then check that others get all of it without running a stage."""
    remote.name_in(folder)
    cached = {path for path in folder.outs() if not path.startswith(("reports/", *LOG))}
    own = ("reports/tables", "reports/compared.json", "reports/gate.json", "reports/comparison.md")
    cached |= {path for path in folder.outs() if path.startswith(own)}
    assert set(uploads(folder, remote)) == cached
    folder.dvc("push", "--run-cache", **remote.environment)
    assert uploads(folder, remote) == []
    assert "in sync" in folder.dvc("status", "--cloud", **remote.environment)

    clones = [Folder(place / name, environment) for name in ("pulled", "reproduced")]
    for clone in clones:
        folder.git("clone", "--quiet", str(folder.root), str(clone.root))
        remote.name_in(clone)
    clones[0].dvc("pull", **remote.environment)
    assert ran(clones[1].dvc("repro", "--pull", **remote.environment)) == []

    results = bytes_of(folder.root)
    results = {path: content for path, content in results.items() if not path.startswith(LOG)}
    for clone in clones:
        found = bytes_of(clone.root)
        found = {path: content for path, content in found.items() if not path.startswith(LOG)}
        assert found == results
        assert clone.git("status", "--porcelain") == ""
    # The run cache came with it: runs in the first clone are not repeated here.
    for at in (clones[1], folder):
        at.edit(heuristics__pool__tetris_weights=[0.9])
    clones[1].dvc("repro", "heuristics@online")
    clones[1].dvc("push", "--run-cache", **remote.environment)
    assert ran(folder.dvc("repro", "--pull", "heuristics@online", **remote.environment)) == []


def test_a_folder_shares_results_and_runs(folder: Folder, tmp_path: Path, warm_environment: dict[str, str]) -> None:
    goes_round(folder, Remote(str(tmp_path / "remote"), {}, {}), tmp_path, warm_environment)


@pytest.mark.slow
def test_a_bucket_shares_results_and_runs(
    folder: Folder, bucket: Remote, tmp_path: Path, warm_environment: dict[str, str]
) -> None:
    goes_round(folder, bucket, tmp_path, warm_environment)


def test_a_small_project_goes_through_a_bucket(
    bucket: Remote, tmp_path: Path, warm_environment: dict[str, str]
) -> None:
    mine, other = Folder(tmp_path / "mine", warm_environment), Folder(tmp_path / "other", warm_environment)
    (mine.root / ".dvc").mkdir(parents=True)
    mine.git("init", "--quiet", "--initial-branch", "main")
    (mine.root / ".dvc" / "config").write_text("")
    (mine.root / ".dvc" / ".gitignore").write_text("/config.local\n/tmp\n/cache\n")
    settings = "".join(f"    {key} = {value}\n" for key, value in {"url": bucket.url, **bucket.settings}.items())
    (mine.root / ".dvc" / "config.local").write_text(f"[core]\n    remote = shared\n['remote \"shared\"']\n{settings}")
    (mine.root / "double.py").write_text("open('out', 'w').write(2 * open('double.py').read())\n")
    stage = {"cmd": "python double.py", "deps": ["double.py"], "outs": ["out"]}
    (mine.root / "dvc.yaml").write_text(json.dumps({"stages": {"double": stage}}))
    assert ran(mine.dvc("repro")) == ["double"]
    mine.git("add", "--all")
    mine.git("commit", "--quiet", "-m", "doubled")
    mine.dvc("push", **bucket.environment)
    mine.git("clone", "--quiet", str(mine.root), str(other.root))
    (other.root / ".dvc" / "config.local").write_text((mine.root / ".dvc" / "config.local").read_text())
    assert ran(other.dvc("repro", "--pull", **bucket.environment)) == []
    assert (other.root / "out").read_text() == 2 * (mine.root / "double.py").read_text()
    assert other.git("status", "--porcelain") == ""


def test_what_is_in_no_remote_is_named(folder: Folder, tmp_path: Path, warm_environment: dict[str, str]) -> None:
    Remote(str(tmp_path / "empty"), {}, {}).name_in(folder)
    clone = Folder(tmp_path / "clone", warm_environment)
    folder.git("clone", "--quiet", str(folder.root), str(clone.root))
    Remote(str(tmp_path / "empty"), {}, {}).name_in(clone)
    with pytest.raises(AssertionError, match="data/jobsets/online"):
        clone.dvc("pull")


def test_the_repository_names_no_remote() -> None:
    assert "remote" not in (REPOSITORY / ".dvc" / "config").read_text()
    stages = YAML(typ="safe").load(REPOSITORY / "dvc.yaml")["stages"]
    assert "remote:" not in json.dumps(stages)
