"""A task's key is the same in every process, and another for whatever could change its result."""

import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from builders import REPOSITORY
from executed import Sum, here, total

from pipeline.core.config import Params
from pipeline.execution import worker as store
from pipeline.execution.worker import code_digest, keys_of

TASK = Sum(np.array([1.0, 2.0]), Path("notes"))


def key(function: object = total, task: object = TASK, inputs: tuple[Path, ...] = ()) -> str:
    (found,) = keys_of(function, [task], inputs)  # type: ignore[arg-type]
    return found


def test_equal_tasks_have_one_key_and_others_another() -> None:
    assert key() == key(task=Sum(np.array([1.0, 2.0]), Path("notes")))
    others: list[object] = [
        Sum(np.array([1.0, 2.5]), Path("notes")),
        Sum(np.array([1, 2]), Path("notes")),
        Sum(np.array([[1.0, 2.0]]), Path("notes")),
        Sum(np.array([1.0, 2.0]), Path("elsewhere")),
        tuple(TASK),
        [*TASK],
        {"values": 1},
        {"value": 1},
        1,
        1.0,
        True,
        "1",
        b"1",
        None,
        np.float64(1),
        ["1", "2"],
        ["12"],
        [["1"], "2"],
        [["1", "2"]],
    ]
    assert len({key(), *(key(task=other) for other in others)}) == len(others) + 1


def test_the_function_what_it_holds_and_the_parameters_are_part_of_it(params: Params) -> None:
    other_seed = params.model_copy(update={"seed": params.seed + 1})
    functions = [total, here, partial(total, factor=2.0), partial(total, factor=3.0)]
    functions += [partial(total, factor=one) for one in (params, other_seed)]  # type: ignore[arg-type]
    assert len({key(function) for function in functions}) == len(functions)


def test_inputs_count_by_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("a")
    first = key(inputs=(tmp_path,))
    assert key(inputs=(tmp_path,)) == first != key()
    (tmp_path / "jobs").write_text("b")
    assert key(inputs=(tmp_path,)) != first


def test_another_version_of_the_code_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    first = key()
    monkeypatch.setattr(store, "code_digest", lambda: "another")
    assert key() != first


def test_another_process_finds_the_same_digest_of_the_code() -> None:
    script = "from pipeline.execution.worker import code_digest; print(code_digest())"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.strip() == code_digest()


def test_a_function_without_a_name_is_no_task() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        key(lambda task: task)


def test_another_process_finds_the_same_key_whatever_the_order_of_its_sets(params: Params) -> None:
    script = (
        "from functools import partial; from pathlib import Path; from executed import total\n"
        "from pipeline.core.config import load_params; from pipeline.execution.worker import keys_of\n"
        f"params = load_params(Path({str(REPOSITORY / 'params.yaml')!r}))\n"
        "print(keys_of(partial(total, factor=params), [1])[0])\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in "12"
    }
    assert len(said) == 1
