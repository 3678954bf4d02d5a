"""What DVC says, read: its graph, what it did, and what it says of others that are at work."""

from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.farming import dvc_cli

BUSY = "ERROR: 'models' is busy, it is being blocked by:\n  (PID 7): dvc repro\n"


def pretend(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(dvc_cli, "DVC", ("sh", "-c", script))


def test_separate_pipelines_and_names_with_an_at_are_one_graph() -> None:
    drawn = ["flowchart TD", '\tnode1["a@x"]', '\tnode2["b"]', "\tnode1-->node2", "flowchart TD", '\tnode3["c.dvc"]']
    assert dvc_cli.parse_graph(drawn) == {"a@x": frozenset(), "b": frozenset({"a@x"}), "c.dvc": frozenset()}


def test_what_dvc_says_beside_is_told_from_what_stages_say() -> None:
    for line in ("", "> python -m pipeline gate", "Updating lock file 'dvc.lock'", "Running stage 'gate':"):
        assert dvc_cli.is_noise(line), line
    for line in ("gate: started", "error: no ink", "ERROR: failed to reproduce 'gate'", "Runningstage"):
        assert not dvc_cli.is_noise(line), line
    cached = "Stage 'gate' is cached - skipping run, checking out outputs"
    assert dvc_cli.fate(cached) == ("gate", dvc_cli.CACHED)


def test_a_stage_that_others_still_run_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    script = f"echo x >> {asked}; if [ $(wc -l < {asked}) -lt 3 ]; then printf '%s' \"{BUSY}\" >&2; exit 1; fi"
    pretend(monkeypatch, script + "; echo '{\"gate\": []}'")
    assert dvc_cli.stale() == {"gate"}
    assert len(asked.read_text().split()) == 3


def test_what_dvc_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dvc_cli, "BUSY_S", 0.0)
    pretend(monkeypatch, f"printf '%s' \"{BUSY}\" >&2; exit 1")
    with pytest.raises(
        UserError, match=r"^dvc status: 'models' is busy, it is being blocked by: \(PID 7\): dvc repro$"
    ):
        dvc_cli.stale()
    pretend(monkeypatch, "echo 'python: No module named dvc' >&2; exit 1")
    with pytest.raises(UserError, match=r"^dvc dag: python: No module named dvc$"):
        dvc_cli.graph()
    pretend(monkeypatch, "exit 3")
    with pytest.raises(UserError, match=r"^dvc dag: failed$"):
        dvc_cli.graph()
