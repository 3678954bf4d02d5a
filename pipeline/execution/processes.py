"""Workers that are processes of this machine."""

import multiprocessing as mp
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from pipeline.errors import UserError
from pipeline.execution.beginning import begin_child, environment
from pipeline.execution.setting import Setting
from pipeline.execution.worker import Errand, Order, carry_out

LOOKED_S = 1.0  # between two tellings of how far it is


class Processes:
    """A pool that is begun with the first task, and again when one of its processes was killed."""

    def __init__(self, setting: Setting, order: Order, threads: int) -> None:
        self._most = setting.workers or cores()
        self._order = order
        # Where there are more threads than cores, one that spins while it waits takes another's core.
        crowded = {"GOMP_SPINCOUNT": "0"} if self._most * threads > cores() else {}
        self._environment = environment(threads) | crowded
        self._pool: ProcessPoolExecutor | None = None

    def run(self, errands: Sequence[Errand], on_done: Callable[[int], None]) -> None:
        """Carry out tasks; of some nobody may know, if a process was killed."""
        if self._pool is None:
            context = mp.get_context(
                "spawn"
            )  # a fork would inherit compiled code's threads in the middle of their work
            self._pool = ProcessPoolExecutor(min(self._most, len(errands)), context, begin_child, (self._environment,))
        pool = self._pool
        try:
            left: set[Future[str]] = {pool.submit(carry_out, self._order, errand) for errand in errands}
            total = len(left)
            while left:
                done, left = wait(left, LOOKED_S, FIRST_COMPLETED)
                for future in done:
                    if said := future.result():
                        raise UserError(said)
                on_done(total - len(left))
        except BrokenProcessPool:
            self.close()
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None

    def _end(self) -> None:
        """End them at once: a signal would wait for what is being computed."""
        if self._pool is not None:
            for child in list((self._pool._processes or {}).values()):
                child.kill()
        self.close()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
