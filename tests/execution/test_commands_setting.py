"""Where tasks run is said by a variable or by a file, and a word that is none is one line."""

from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.execution.commands import FILE, VARIABLE, Setting, setting


def test_by_default_all_is_done_here_or_as_the_stage_says() -> None:
    assert setting() == Setting(backend="serial")
    assert setting(Setting(backend="processes", workers=2)).workers == 2


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("serial", {"backend": "serial"}),
        ("processes", {"backend": "processes"}),
        ("processes:2", {"backend": "processes", "workers": 2}),
        ("ray:4", {"backend": "ray", "workers": 4}),
        ("ray@head:6379", {"backend": "ray", "address": "head:6379"}),
        ("ray:4@10.0.0.1:6379", {"backend": "ray", "workers": 4, "address": "10.0.0.1:6379"}),
        ("slurm:8@short", {"backend": "slurm", "workers": 8, "partition": "short"}),
    ],
)
def test_the_variable_says_it_in_a_word(monkeypatch: pytest.MonkeyPatch, word: str, found: dict[str, object]) -> None:
    FILE.write_text('[executor]\nbackend = "serial"\n')
    monkeypatch.setenv(VARIABLE, word)
    assert setting(Setting(backend="processes")) == Setting.model_validate(found)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("threads:2", r"PIPELINE_EXECUTOR: expected serial, processes:N, ray:N, .*, found 'threads:2'"),
        ("processes:0", "found 'processes:0'"),
        ("processes:2@here", "found 'processes:2@here'"),
        ("ray:2@head", "PIPELINE_EXECUTOR: expected HOST:PORT of a Ray cluster, found 'head'"),
        ("slurm", "PIPELINE_EXECUTOR: expected how many workers Slurm runs at a time, as slurm:4"),
    ],
)
def test_a_word_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, word: str, said: str) -> None:
    monkeypatch.setenv(VARIABLE, word)
    with pytest.raises(UserError, match=said):
        setting()


def test_the_file_stands_at_the_root_also_for_an_experiment_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FILE.write_text('[executor]\nbackend = "slurm"\nworkers = 3\nminutes = 5\noptions = {account = "mine"}\n')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert setting() == Setting()
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    assert setting() == Setting(backend="slurm", workers=3, minutes=5, options={"account": "mine"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[executor", r"pipeline.toml: cannot be read \(Expected"),
        ("[other]\n", r"pipeline.toml: expected a table \[executor\] only, found 'other'"),
        ("executor = 3\n", r"pipeline.toml: expected a table \[executor\], found 3"),
        ('[executor]\nbackend = "dask"\n', "pipeline.toml: executor.backend: Input should be 'serial'.*found 'dask'"),
        ("[executor]\nworker = 3\n", "pipeline.toml: executor.worker: Extra inputs are not permitted, found 3"),
        ("[executor]\nworkers = 0\n", "pipeline.toml: executor.workers: .* greater than or equal to 1, found 0"),
    ],
)
def test_a_file_that_says_nothing_is_refused(text: str, said: str) -> None:
    FILE.write_text(text)
    with pytest.raises(UserError, match=said):
        setting()
