"""Loops that threads divide among themselves."""

import os
import threading

import numpy as np
import pytest

from pipeline.core.types import IntArray
from pipeline.simulation import compiled
from pipeline.simulation.compiled import Span, dealt, threaded


@threaded(len)
def mark(span: Span, out: IntArray) -> int:
    """Count a visit of each item, and note where its part began."""
    for i in range(*span):
        out[i, 0] += 1
        out[i, 1] = span[0]
    return span[1] - span[0]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("items", [0, 1, 2, 5, 64])
def test_each_item_is_visited_once_in_equal_parts(threads: int, items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "get_num_threads", lambda: threads)
    monkeypatch.setattr(compiled, "WORTH_S", 1e-12)
    out = np.zeros((items, 2), dtype=np.int64)
    assert mark(out) == items
    assert (out[:, 0] == 1).all()
    _, sizes = np.unique(out[:, 1], return_counts=True)
    assert len(sizes) == min(threads, items)
    assert not items or sizes.max() - sizes.min() <= 1


def test_a_loop_that_is_soon_over_stays_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "get_num_threads", lambda: 2)
    monkeypatch.setattr(compiled, "WORTH_S", 0.1)
    out = np.zeros((8, 2), dtype=np.int64)
    for _ in range(30):  # the first may compile, and each call halves what the next expects at most
        mark(out)
    assert (out[:, 1] == 0).all()


def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "get_num_threads", lambda: 2)
    monkeypatch.setattr(compiled, "WORTH_S", 1e-12)
    assert mark(np.zeros((4, 2), dtype=np.int64)) == 4  # threads exist before the fork
    child = os.fork()
    if child == 0:
        ended = threading.Timer(20.0, os._exit, [3])  # without its own threads, it would wait for ever
        ended.start()
        try:
            code = 0 if mark(np.zeros((4, 2), dtype=np.int64)) == 4 else 4
        except BaseException:  # otherwise the child would go on with the tests
            code = 5
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(("count", "hands"), [(7, 3), (6, 3), (2, 3), (1, 1)])
def test_dealing_gives_the_parts_of_a_loop_every_item_in_turn(count: int, hands: int) -> None:
    items = [dealt.py_func(place, count, hands) for place in range(count)]
    assert sorted(items) == list(range(count))
    few, more = divmod(count, hands)
    first_part = items[: few + (more > 0)]
    assert first_part == list(range(0, count, hands))
