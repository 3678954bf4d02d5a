"""`fidelity`: a command for clones, whose implementation is in `benchmarks`."""

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError


def test_fidelity_passes_its_arguments_on() -> None:
    done = CliRunner().invoke(app, ["fidelity", "--jobs", "5"], standalone_mode=False)
    assert str(done.exception) == "Input should be greater than or equal to 10"


def test_fidelity_outside_of_a_clone_says_where_to_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    monkeypatch.setattr("pipeline.cli.experiments.import_module", missing)
    done = CliRunner().invoke(app, ["fidelity"], standalone_mode=False)
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith("fidelity: expected the root of a clone as the working directory")
