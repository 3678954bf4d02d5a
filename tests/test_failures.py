"""Failures of the machine: full disks, closed folders, damaged caches. Each produces one line, and no data is lost."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY
from repositories import Folder, begin, bytes_of

from pipeline.errors import UserError
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.storage import read_jobsets, write_jobsets

ROOT = os.geteuid() == 0
HEAD = "jobset,job,arrival,duration,cpu,memory"
RESOURCES = {"cpu": 10, "memory": 10}
SJF = "schedule jobs.csv --scenario online --policy sjf --out"

MANY = 30_000  # enough jobs for every kind of schedule to exceed 20 KB

needs_root = pytest.mark.skipif(not ROOT, reason="only root may act as another user, or mount a file system")


class Said(NamedTuple):
    code: int
    lines: list[str]


def run(folder: Path, words: str, forked: Mapping[str, str] | None = None, **how: object) -> Said:
    """Run a command as users do, or forked from a process that has imported its libraries."""
    named = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONDONTWRITEBYTECODE": "1", **(forked or {})}
    named["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *filter(None, [(forked or {}).get("PYTHONPATH")])])
    command = ["python" if forked else sys.executable, "-m", "pipeline", *words.split()]
    done = subprocess.run(command, check=False, cwd=folder, env=named, capture_output=True, text=True, **how)  # type: ignore[call-overload]
    return Said(done.returncode, done.stderr.splitlines())


def refused(said: Said, line: str) -> None:
    assert said == Said(2, [f"error: {line}"])


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def fill(folder: Path, jobs: int = 3) -> None:
    """Put params.yaml and a job table into a folder."""
    shutil.copy(REPOSITORY / "params.yaml", folder)
    rows = [f"{k // 100},{k},{k % 100},1,1,1" for k in range(jobs)]
    (folder / "jobs.csv").write_text("\n".join([HEAD, *rows]))


# A full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 KB, in which a file leaves only some 20 KB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("this system lets nobody mount a tmpfs")
    try:
        (place / "taken").write_bytes(b"0" * 590_000)
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@needs_root
@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_a_full_disk_keeps_the_older_schedule(
    tmp_path: Path, small_disk: Path, name: str, warm_environment: dict[str, str]
) -> None:
    fill(tmp_path, jobs=MANY)
    (small_disk / name).write_bytes(b"older")
    before = files(small_disk)
    said = run(tmp_path, f"{SJF} disk/{name}", warm_environment)
    refused(said, f"disk/{name}: cannot be written (No space left on device)")
    assert files(small_disk) == before


@needs_root
def test_a_full_disk_keeps_older_jobsets_or_leaves_none(
    tmp_path: Path, small_disk: Path, warm_environment: dict[str, str]
) -> None:
    fill(tmp_path)
    (small_disk / "log").write_bytes(b"")
    (tmp_path / "data").symlink_to(small_disk)
    said = run(tmp_path, "generate online", warm_environment)
    assert said.code == 2
    assert said.lines[-1].startswith("error: data/jobsets/online/")
    assert said.lines[-1].endswith(".parquet: cannot be written (No space left on device)")
    for path in (small_disk / "jobsets").rglob("*"):
        assert path.suffix != ".part"
        assert path.is_dir() or len(pd.read_parquet(path))


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_a_file_larger_than_allowed_keeps_the_older_schedule(tmp_path: Path, name: str) -> None:
    fill(tmp_path, jobs=MANY)
    (tmp_path / name).write_bytes(b"older")
    before = files(tmp_path)
    limit = 20_000
    said = run(tmp_path, f"{SJF} {name}", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    refused(said, f"{name}: cannot be written (File too large)")
    assert files(tmp_path) == before


# Closed folders


# Python itself may be readable by root only: the same command first runs as root, so that everything is imported.
AS_NOBODY = """
import json, os, sys, tempfile, traceback
from pipeline.cli import main

def run_in(folder, words):
    os.chdir(folder)
    sys.argv[1:] = words.split()
    said, stderr = tempfile.TemporaryFile(), os.dup(2)
    os.dup2(said.fileno(), 2)
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os.dup2(stderr, 2)
    os.close(stderr)
    said.seek(0)
    return code, said.read().decode().splitlines()

runs = json.loads(sys.argv[1])
for words, open_folder in {words: open_folder for open_folder, _, words in runs}.items():
    run_in(open_folder, words)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(json.dumps([run_in(closed_folder, words) for _, closed_folder, words in runs]))
"""


UNWRITTEN = {
    "log": "data/log: cannot be written (Permission denied)",
    "generate online": "data/jobsets/online/train.parquet: cannot be written (Permission denied)",
    f"{SJF} out.csv": "out.csv: cannot be written (Permission denied: .)",
    f"{SJF} new/out.csv": "new/out.csv: cannot be written (Permission denied: .)",
}
UNREAD = {
    "params.yaml": (
        "generate online",
        "params.yaml: cannot be read (Permission denied); run this at the repository's root",
    ),
    **{
        name: (
            SJF.replace("jobs.csv", name) + " ../open/out.csv",
            f"Invalid value for 'jobs': path '{name}' is not readable",
        )
        for name in ("jobs.csv", "log.swf", "jobs.parquet")
    },
}


class Nobody(NamedTuple):
    """What commands told a user who is not root; they run one after the other, each in its own folder."""

    said: dict[str, Said]  # by the command, or by the file that may not be read
    changed: dict[str, bool]  # whether its folder contains anything else afterwards


FEWER = ("jobsets: {train: 100, validation: 50, test: 200}", "jobsets: {train: 40, validation: 10, test: 10}")


def closed(tmp_path: Path) -> Path:
    """Make a folder owned by root, with all files that commands read, for a user who is not root."""
    for place in (tmp_path / "open", tmp_path / "closed"):
        place.mkdir(parents=True)
        fill(place)
        text = (place / "params.yaml").read_text()
        assert text.count(FEWER[0]) >= 1
        (place / "params.yaml").write_text(text.replace(*FEWER))
        pd.read_csv(place / "jobs.csv").to_parquet(place / "jobs.parquet")
        (place / "log.swf").write_text("1 0 0 60 1 -1 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n")
    return tmp_path / "closed"


@pytest.fixture(scope="module")
def nobody() -> Iterator[Nobody]:
    """All these commands in one process, because starting a process takes most of the time.

    Their folder is not pytest's, which another pytest on this machine closes to other users.
    """
    with TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        yield _refusals(place)


def _refusals(place: Path) -> Nobody:
    words = {name: name for name in UNWRITTEN} | {name: words for name, (words, _) in UNREAD.items()}
    folders = {name: closed(place / str(number)) for number, name in enumerate(words)}
    for name in UNREAD:
        (folders[name] / name).chmod(0o600)
        (folders[name].parent / "open").chmod(0o777)
    before = {name: files(folder) for name, folder in folders.items()}
    runs = [[str(folders[name].parent / "open"), str(folders[name]), each] for name, each in words.items()]
    named = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", AS_NOBODY, json.dumps(runs)]
    told = json.loads(subprocess.check_output(command, env=named, text=True).splitlines()[-1])
    said = {name: Said(code, lines) for name, (code, lines) in zip(words, told, strict=True)}
    return Nobody(said, {name: files(folder) != before[name] for name, folder in folders.items()})


@needs_root
@pytest.mark.parametrize(("words", "line"), UNWRITTEN.items())
def test_a_folder_that_may_not_be_written_to_is_named(nobody: Nobody, words: str, line: str) -> None:
    refused(nobody.said[words], line)
    assert not nobody.changed[words]


@needs_root
@pytest.mark.parametrize(("name", "line"), [(name, line) for name, (_, line) in UNREAD.items()])
def test_a_file_that_may_not_be_read_is_named(nobody: Nobody, name: str, line: str) -> None:
    said = nobody.said[name]
    assert said.code == 2
    assert [found.removesuffix(" (--help shows what there is)") for found in said.lines] == [f"error: {line}"]


@needs_root
def test_a_folder_that_is_read_only_for_everybody_is_named(
    tmp_path: Path, small_disk: Path, warm_environment: dict[str, str]
) -> None:
    fill(tmp_path)
    (small_disk / "out.csv").write_bytes(b"older")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    said = run(tmp_path, f"{SJF} disk/out.csv", warm_environment)
    assert said.code == 2
    assert said.lines[0].startswith("error: disk/out.csv: cannot be written (")
    assert (small_disk / "out.csv").read_bytes() == b"older"


# Without git, without dvc.lock, and with a damaged cache


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory, warm_environment: dict[str, str]) -> Folder:
    """A repository in which DVC has generated jobsets."""
    folder = begin(tmp_path_factory.mktemp("first") / "repository", warm_environment)
    folder.dvc("repro", "generate@online")
    return folder


@pytest.fixture
def folder(generated: Folder, tmp_path: Path, warm_environment: dict[str, str]) -> Folder:
    """A copy of that repository, which tests may change."""
    shutil.copytree(generated.root, tmp_path / "copy", symlinks=True)
    return Folder(tmp_path / "copy", warm_environment)


def run_in(folder: Folder, words: str) -> Said:
    """Run a command in a copy, forked from a process that has imported its libraries."""
    command = ["python", "-m", "pipeline", *words.split()]
    done = subprocess.run(
        command, check=False, cwd=folder.root, env=folder._environment, capture_output=True, text=True
    )
    return Said(done.returncode, done.stderr.splitlines())


def damage(path: Path) -> None:
    """Change one byte in the middle of a file, as a failing disk does: its mode and size stay."""
    mode = path.stat().st_mode
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(bytes(content))
    path.chmod(mode)


def cached(folder: Folder, content: bytes) -> Path:
    """Return the path of some content in DVC's cache."""
    found = [path for path in (folder.root / ".dvc/cache/files/md5").rglob("*") if path.is_file()]
    (path,) = [path for path in found if path.read_bytes() == content]
    return path


def test_jobsets_from_a_damaged_cache_are_not_taken(folder: Folder) -> None:
    # DVC does not check cache files that are write-protected: it puts the damaged ones in place.
    place = folder.root / "data/jobsets/online"
    whole = {split: (place / f"{split}.parquet").read_bytes() for split in ("train", "validation", "test")}
    for content in whole.values():
        damage(cached(folder, content))
    shutil.rmtree(folder.root / "data/jobsets")
    assert "data/jobsets/online" in folder.dvc("checkout", "--allow-missing")
    damaged = {split: (place / f"{split}.parquet").read_bytes() for split in whole}
    for split, bad in damaged.items():
        assert bad != whole[split]
        for name, content in (whole | {split: bad}).items():
            (place / f"{name}.parquet").unlink()
            (place / f"{name}.parquet").write_bytes(content)
        said = run_in(folder, "evaluate heuristics online")
        assert said.code == 2
        (line,) = said.lines
        assert line.startswith(f"error: data/jobsets/online/{split}.parquet: not a readable table (")
        assert files(folder.root / "reports/tables") == {}


def test_no_damaged_byte_gives_other_jobsets(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrival, duration = np.sort(rng.integers(0, 50, 60)), rng.integers(1, 20, 60)
    jobs = JobSet(arrival, duration, rng.integers(1, 10, (60, 2)))
    write_jobsets(tmp_path, "train", {50: [jobs]}, RESOURCES)
    whole = (tmp_path / "train.parquet").read_bytes()
    values = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # position of the footer: the values are before it
    refusals = 0
    for place in range(4, values, 3):
        (tmp_path / "train.parquet").write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            (found,) = read_jobsets(tmp_path, "train", RESOURCES)[50]
        except UserError:
            refusals += 1
        else:
            assert all(np.array_equal(mine, yours) for mine, yours in zip(found, jobs, strict=True)), place
    assert refusals > values / 6


def test_a_damaged_cache_is_found_and_repaired_when_dvc_may_look(folder: Folder) -> None:
    before = bytes_of(folder.root)
    damage(cached(folder, before["data/jobsets/online/train.parquet"]))
    shutil.rmtree(folder.root / "data/jobsets")
    for path in (folder.root / ".dvc/cache").rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)  # chmod -R u+w .dvc/cache
    folder.dvc("repro", "generate@online")
    assert bytes_of(folder.root) == before


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda table: table.rename(columns={"arrival": "submit"}), "missing arrival; unknown submit"),
        (lambda table: table.drop(columns="job"), "missing job"),
        (lambda table: table.assign(version=1), "unknown version"),
    ],
)
def test_jobsets_of_an_older_schema_are_refused_and_older_results_stay(
    folder: Folder, change: Callable[[pd.DataFrame], pd.DataFrame], line: str
) -> None:
    path = folder.root / "data/jobsets/online/train.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    results = folder.root / "reports/tables/heuristics/online/jobsets.parquet"
    results.parent.mkdir(parents=True)
    results.write_bytes(b"older")
    wanted = "columns: expected load, jobset, job, arrival, duration, cpu, memory"
    refused(run_in(folder, "evaluate heuristics online"), f"data/jobsets/online/train.parquet: {wanted}; {line}")
    assert list(files(folder.root / "reports/tables")) == ["heuristics/online/jobsets.parquet"]
    assert results.read_bytes() == b"older"


def test_without_git_the_pipeline_runs_and_experiments_are_refused(folder: Folder) -> None:
    shutil.rmtree(folder.root / ".git")
    folder.dvc("config", "core.no_scm", "true")
    before = bytes_of(folder.root)
    shutil.rmtree(folder.root / "data/jobsets")
    assert run_in(folder, "generate online") == Said(0, [])
    assert bytes_of(folder.root) == before
    command, named = ["python", "-m", "dvc", "exp", "run", "--dry"], folder._environment
    done = subprocess.run(command, check=False, cwd=folder.root, env=named, capture_output=True, text=True)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "scm" in done.stderr.lower() or "git" in done.stderr.lower()


def test_without_dvc_lock_dvc_takes_what_it_did_before(folder: Folder) -> None:
    lock, before = folder.root / "dvc.lock", bytes_of(folder.root)
    content = lock.read_bytes()
    lock.unlink()
    said = folder.dvc("repro", "generate@online")
    assert "is cached - skipping run" in said
    assert bytes_of(folder.root) == before
    assert lock.read_bytes() == content
    assert json.loads(folder.dvc("status", "--json", "generate@online")) == {}
