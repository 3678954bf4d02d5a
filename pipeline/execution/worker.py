"""What every worker does, wherever it is: see that it may, carry out a task, and store what that found."""

import functools
import os
import pickle
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.execution.beginning import must_be
from pipeline.execution.store import Store


@dataclass(frozen=True)
class Order:
    """What all workers of a stage are told."""

    root: Path  # where the stage runs, absolute
    mark: Path  # a file in the store's folder, absolute
    word: str  # that it holds
    code: str  # digest of the stage's code
    torch_threads: int | None = None  # None: the stage has not imported torch, and need not wait for it

    @property
    def store(self) -> Store:
        """Return where results go."""
        return Store(self.mark.parent)


@dataclass(frozen=True)
class Errand:
    """One task on its way to a worker."""

    key: str
    packed: bytes  # a function and what it is called with


def packed(key: str, function: Callable[[Any], Any], task: object) -> Errand:
    """Return a task that can be sent."""
    return Errand(key, pickle.dumps((function, task), protocol=5))


def carry_out(order: Order, errand: Errand) -> str:
    """Carry out a task and store its result, unless that is there; return what a user did wrong, or nothing."""
    try:
        _settle(order)
        if not order.store.has(errand.key):
            function, task = pickle.loads(errand.packed)
            order.store.write(errand.key, function(task))
    except UserError as error:
        return str(error)
    return ""


def carry_out_all(order: Order, errands: Sequence[Errand]) -> str:
    """Carry out tasks one after another; return what a user did wrong in the first that fails, or nothing."""
    return next((said for errand in errands if (said := carry_out(order, errand))), "")


@functools.cache
def _settle(order: Order) -> None:
    """Work where the stage does."""
    host = socket.gethostname()
    try:
        there = order.mark.read_text()
        os.chdir(order.root)
    except OSError as error:
        raise UserError(_unseen(host, order, error.strerror or str(error))) from error
    if there != order.word:
        raise UserError(_unseen(host, order, "other content"))
    must_be(order.code)
    if order.torch_threads:  # by itself it would take no more than this machine has cores, and sum in another order
        import_module("torch").set_num_threads(order.torch_threads)


def torch_threads() -> int | None:
    """Return how many threads torch has in this process, if it is there."""
    torch: Any = sys.modules.get("torch")
    return None if torch is None else int(torch.get_num_threads())


def _unseen(host: str, order: Order, why: str) -> str:
    return (
        f"executor: {host} does not see {order.mark.parent} and {order.root} as this machine does ({why});"
        " expected folders that all workers share"
    )
