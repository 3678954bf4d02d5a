"""Guard around an external policy: checks its answers and its time."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pipeline.core.types import FloatArray, IntArray, KeyArray, Observation, legal_actions, uniform
from pipeline.errors import UserError

LIMIT_MS = 10.0  # of a decision, the mean over all so far
GRACE_S = 2.0  # of decisions, before which no policy counts as slow
HANG_S = 60.0  # for one call, in addition to the limit of its decisions
LONGEST_ERROR = 200  # characters of a policy's own error
MOST_DECISIONS = 100_000  # of an episode, searched for a draw

Decide = Callable[[Any, FloatArray], Any]  # (view, uniform draws [B]) -> actions [B], or a setting of groups


class PolicyError(UserError):
    """An external policy raised, returned an invalid answer, or was too slow."""

    def __init__(self, word: str, what: str, draw: float = -1.0, call: int = 0) -> None:
        """Name the policy by its word, and the call; `draw`, an input of the decision, identifies it."""
        super().__init__(f"{word}: call {call}: {what}" if call else f"{word}: {what}")
        self.word, self.what, self.given = word, what, draw


class Guard:
    """An external policy under guard; the views that it gets are read-only."""

    def __init__(self, word: str, decide: Decide, limit_ms: float = LIMIT_MS, orders: int = 0) -> None:
        """Guard a policy, called `word` in messages; `orders` is the number of orders of groups' queues, else 0.

        A decision may take `limit_ms` on average; the first call, which may load or compile, does not count.
        """
        self.word, self._decide, self._limit_s, self._orders = word, decide, limit_ms / 1000, orders
        self._calls, self._decisions, self._spent_s = 0, 0, 0.0

    @property
    def slots(self) -> int:
        """Number of waiting jobs that a model must see; 0: any."""
        return int(getattr(self._decide, "slots", 0))

    def __call__(self, view: Any, draws: FloatArray) -> Any:
        """Return the policy's checked answer. Raises PolicyError: the answer is invalid, or took too long."""
        self._calls += 1
        begun = time.perf_counter()
        try:
            with _alarm(HANG_S + len(draws) * self._limit_s):
                answer = self._decide(view._make(map(_sealed, view)), draws.copy())
        except (Exception, SystemExit) as error:
            raise self._error(f"raised {error_line(error)}", float(draws[0])) from error
        self._count(len(draws), time.perf_counter() - begun, float(draws[0]))
        if self._orders:
            return self._setting(view, answer, draws)
        return self._actions(view, answer, draws)

    def _error(self, what: str, draw: float) -> PolicyError:
        return PolicyError(self.word, what, draw, self._calls)

    def _count(self, decisions: int, took_s: float, draw: float) -> None:
        if self._calls == 1:
            return
        self._decisions += decisions
        self._spent_s += took_s
        each_s = self._spent_s / self._decisions
        if self._spent_s > GRACE_S and each_s > self._limit_s:
            found = f"took {1000 * each_s:.3g} ms a decision, the mean of {self._decisions}"
            raise self._error(f"{found}; the limit is {1000 * self._limit_s:g} ms", draw)

    def _actions(self, view: Observation, answer: Any, draws: FloatArray) -> IntArray:
        legal = legal_actions(view)
        actions = self._whole(answer, (len(draws),), "actions", draws)
        outside = (actions < 0) | (actions >= legal.shape[1])
        void = legal.shape[1] - 1
        self._refuse(outside, actions, f"expected 0 to {void} (void)", draws)
        self._refuse(~legal[np.arange(len(draws)), actions], actions, "it is illegal here: see `legal_actions`", draws)
        return actions

    def _setting(self, view: Any, answer: Any, draws: FloatArray) -> tuple[IntArray, IntArray]:
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise self._error(f"returned {_shown(answer)}; expected (share, order)", float(draws[0]))
        share = self._whole(answer[0], view.share.shape, "share", draws)
        order = self._whole(answer[1], view.order.shape, "order", draws)
        self._refuse((share < 0).any(axis=(1, 2)), share, "expected no share below 0", draws)
        outside = ((order < 0) | (order >= self._orders)).any(axis=1)
        self._refuse(outside, order, f"expected orders from 0 to {self._orders - 1}", draws)
        return share, order

    def _whole(self, answer: Any, shape: tuple[int, ...], what: str, draws: FloatArray) -> IntArray:
        try:
            found = np.asarray(answer)
        except Exception as error:  # rows of several lengths, or tensors of a device
            raise self._error(f"returned no array: {error_line(error)}", float(draws[0])) from error
        if found.shape != shape or found.dtype.kind not in "iu":
            wanted = f"expected {what} of shape {shape}, whole numbers"
            said = f"returned {_shown(answer)} of shape {found.shape}, {found.dtype}"
            raise self._error(f"{said}; {wanted}", float(draws[0]))
        return found.astype(np.int64)

    def _refuse(self, wrong: Any, answer: IntArray, why: str, draws: FloatArray) -> None:
        if wrong.any():
            row = int(wrong.argmax())
            raise self._error(f"returned {_shown(answer[row])}; {why}", float(draws[row]))


def located(draw: float, key: KeyArray) -> tuple[int, int] | None:
    """Return the episode and the number of the decision with a given draw.

    Draws are counter-based: that of a decision follows from its episode's key and its number.

    >>> located(float(uniform(np.array([7], dtype=np.uint64), np.array([5]))[0]), np.array([3, 7], dtype=np.uint64))
    (1, 5)
    """
    for decision in range(MOST_DECISIONS):
        found = np.flatnonzero(uniform(key, np.full(len(key), decision)) == draw)
        if len(found):
            return int(found[0]), decision
    return None


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise a TimeoutError in a block that takes longer; only the main thread receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"no answer within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _sealed(field: Any) -> Any:
    shown = field.view()
    shown.flags.writeable = False
    return shown


def error_line(error: BaseException) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:LONGEST_ERROR]}"


def _shown(answer: Any) -> str:
    text = " ".join(str(answer).split())
    return text if len(text) <= 80 else f"{text[:80]}..."
