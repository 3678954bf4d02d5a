"""`compile`: have what the stages run compiled before they do, several at a time, by playing the smallest problem."""

import multiprocessing as mp
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from pipeline.config import Params, repository_root, smoke_test_params
from pipeline.errors import UserError
from pipeline.progress import progress, say

MOST_PROCESSES = 4  # what they come to at the same time, they compile twice; each holds up to 1.5 GB
LOCK = "lock"
Step = tuple[str, str]  # a stage, and the scenario, agent or transfer that it is of


def run(params: Params) -> None:
    """Play the smallest problem in a folder of its own; what is compiled stays where numba keeps it.

    A part that cannot be played so is named and left out: its stage compiles what it needs.

    Raises:
        UserError: a log is not there.
    """
    in_turn = [[[("generate", name)] for name in params.scenarios], parts(params)]
    small, done = smoke_test_params(params), 0
    with (
        tempfile.TemporaryDirectory() as place,
        _processes(Path(place)) as pool,
        progress("compile, parts", sum(len(these) for these in in_turn)) as advance,
    ):
        if said := pool.submit(play, small, [("log", "")]).result():
            raise UserError(said)
        for these in in_turn:
            for future in as_completed([pool.submit(play, small, steps) for steps in these]):
                done += 1
                advance(done)
                if said := future.result():
                    say(f"compile: left out {said}")


def parts(params: Params) -> list[list[Step]]:
    """Return what can be played side by side: the stages of each agent and of each scenario, those of most first."""
    found = [
        [(stage, agent) for stage in ("pretrain", "finetune", "evaluate")]
        + [("transfer", name) for name, row in params.transfers.items() if row.agent == agent]
        for agent in params.agents
    ]
    solved = params.hindsight.scenarios
    found += [[("heuristics", name), *([("hindsight", name)] if name in solved else [])] for name in params.scenarios]
    return sorted(found, key=len, reverse=True)


def play(params: Params, steps: Sequence[Step]) -> str:
    """Run some stages in this process's folder; return what went wrong, or nothing."""
    from pipeline.stages import evaluate, finetune, generate, heuristics, hindsight, log, pretrain, transfer

    stages: Mapping[str, Callable[[Params, str], None]] = {
        "log": lambda params, _: log.run(params),
        "generate": generate.run,
        "pretrain": pretrain.run,
        "finetune": finetune.run,
        "evaluate": evaluate.run,
        "transfer": transfer.run,
        "heuristics": heuristics.run,
        "hindsight": hindsight.run,
    }
    for stage, subject in steps:
        try:
            stages[stage](params, subject)
        except UserError as error:
            return str(error) if stage == "log" else f"{stage} {subject}: {error}"
        except Exception as error:  # of a problem too small for what is asked; of a fault, the stage itself will tell
            return f"{stage} {subject}: {type(error).__name__} {' '.join(str(error).split())}"
    return ""


@contextmanager
def _processes(place: Path) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that work in a folder; whoever stops early ends them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count, context = min(MOST_PROCESSES, cores), mp.get_context("spawn")
    pool = ProcessPoolExecutor(count, context, _settle, (place, repository_root()))
    try:
        yield pool
    except BrokenProcessPool:
        say("compile: a process was ended from outside, maybe for want of memory; each stage compiles what is left")
    except BaseException:
        for child in mp.active_children():  # or a signal would wait for what is being compiled
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _settle(place: Path, root: Path) -> None:
    """Work in a folder of its own, on one thread, no_progress and untracked; the parent alone answers Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    os.environ |= {"PIPELINE_TRACKING": "off", "DVC_ROOT": str(root)}
    os.environ |= dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    os.chdir(place)
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # as long as the process lives
    _keep_one_at_a_time(place / LOCK)


def _end(number: int, _: object) -> None:
    """End this process and its own at once: the pool would take an exception for the result of a part, and go on."""
    for child in mp.active_children():
        child.kill()
    os._exit(128 + number)


def _keep_one_at_a_time(lock: Path) -> None:
    """Have processes take turns to keep what they compiled: numba numbers the files of a function without a lock."""
    from numba.core.caching import IndexDataCacheFile

    keep: Callable[..., None] = IndexDataCacheFile.save

    def save(self: IndexDataCacheFile, key: object, data: object) -> None:
        with FileLock(lock):
            keep(self, key, data)

    IndexDataCacheFile.save = save  # type: ignore[method-assign]
