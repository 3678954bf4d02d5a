"""Policies by the word that a user gives, and what is said where there is none."""

import sys
from pathlib import Path

import numpy as np
import pytest
from builders import many, observation
from elsewhere import POLICIES

from pipeline.core.types import legal_actions
from pipeline.external.guard import PolicyError
from pipeline.external.loading import external
from pipeline.simulation.rollout import choose, sjf

VIEW = many(observation([3, 2, 5]), 2)


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a file of policies, from which Python imports nothing else afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    (tmp_path / "elsewhere_policies.py").write_text(POLICIES)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "inner.py").write_text(
        "from helping import answer\n\ndef choose(view, draws): return answer"
    )
    (tmp_path / "beside" / "helping.py").write_text("answer = [0, 0]\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('at\\nonce')\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.usefixtures("policies")
@pytest.mark.parametrize("word", ["elsewhere_policies.py:sjf", "elsewhere_policies:sjf", "elsewhere_policies:Made"])
def test_a_callable_is_found_in_a_file_and_in_a_module(word: str) -> None:
    assert np.array_equal(external(word, None)(VIEW, np.zeros(2)), choose(sjf(VIEW), VIEW))
    assert legal_actions(VIEW)[:, 1].all()


@pytest.mark.usefixtures("policies")
def test_a_file_may_import_what_is_next_to_it() -> None:
    assert external("beside/inner.py:choose", None)(VIEW, np.zeros(2)).tolist() == [0, 0]


@pytest.mark.usefixtures("policies")
@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("gone.py:f", "gone.py:f: no such file: "),
        ("gone.onnx", "gone.onnx: no such file: "),
        ("gone:f", "gone:f: cannot be loaded (ModuleNotFoundError: No module named 'gone')"),
        ("elsewhere_policies.py:number", "there is no callable 'number'"),
        ("elsewhere_policies:nothing", "there is no callable 'nothing'"),
        ("broken.py:f", "broken.py:f: cannot be loaded (RuntimeError: at once)"),
    ],
)
def test_what_cannot_be_loaded_is_told_in_one_line(word: str, why: str) -> None:
    with pytest.raises(PolicyError) as caught:
        external(word, None)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("word", ["plan_mine.py:choose", "plan_models/ppo.zip", "plan_mine.policies:choose"])
def test_looking_ahead_is_refused_with_the_reason(word: str) -> None:
    with pytest.raises(PolicyError, match="do not look ahead: leave 'plan_' out"):
        external(word, None, 1.0)
