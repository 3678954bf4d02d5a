"""The table of parts: each entry is what the seam says that it is, for every problem."""

import inspect
from collections.abc import Callable
from typing import cast, get_args, get_origin, get_type_hints

import pytest
import torch

from pipeline.errors import UserError
from pipeline.interactive.explaining.explain import Explaining
from pipeline.interactive.live.deciding import Live
from pipeline.interactive.scheduling.schedule import Scheduling
from pipeline.interactive.showing.show import Showing
from pipeline.problems import PROBLEMS, Problem, problem


def unlike(found: object, declared: object) -> str:
    """What is wrong with a part, given its declared type; nothing if nothing is."""
    if get_origin(declared) is Callable:
        return "" if callable(found) and takes(found, len(get_args(declared)[0])) else "takes other arguments"
    origin = get_origin(declared) or declared
    return "" if isinstance(found, origin) else f"is a {type(found).__name__}"


def takes(function: Callable[..., object], count: int) -> bool:
    """Can a function be called with so many arguments?"""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


KINDS = {
    "Explaining": Explaining,
    "Scheduling": Scheduling,
    "Showing": Showing,
    "JobsInColumns": object,
    "Live": Live,
    "nn": torch.nn,
}
DECLARED = get_type_hints(Problem, localns=KINDS | {"nn": torch.nn})


@pytest.mark.parametrize("word", PROBLEMS)
def test_every_part_of_a_problem_is_of_its_declared_kind(word: str) -> None:
    assert set(PROBLEMS[word]) == set(DECLARED)
    found = {part: unlike(getattr(problem(word), part), declared) for part, declared in DECLARED.items()}
    assert {part: fault for part, fault in found.items() if fault} == {}


def test_a_part_of_another_kind_is_found() -> None:
    assert unlike(lambda params: None, DECLARED["draw"]) == "takes other arguments"
    assert unlike("use", DECLARED["tables"]) == "is a str"


def test_only_declared_parts_can_be_asked_for() -> None:
    with pytest.raises(AttributeError, match="no part of a problem: teach"):
        _ = problem("pool").teach  # type: ignore[attr-defined]


def test_what_a_problem_does_not_have_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {part: place for part, place in PROBLEMS["pool"].items() if part != "show"}
    monkeypatch.setitem(cast("dict[str, object]", PROBLEMS), "pool", there)
    with pytest.raises(UserError, match=r"^problem pool: 'show' is not available$"):
        _ = problem("pool").show
