"""`compile`: have what the stages run compiled before they do, on all cores, by playing the smallest problem."""

import multiprocessing as mp
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pipeline.config import Params, repository_root, smallest
from pipeline.errors import UserError
from pipeline.progress import progress, say

MOST_PROCESSES = 4  # what they compile, they compile twice where they come to it at the same time
FAULTS = (UserError, ValueError, ArithmeticError, LookupError, OSError)  # of a problem too small for what is asked


class Step(NamedTuple):
    """A stage of one scenario, agent or transfer."""

    stage: str
    subject: str


def run(params: Params) -> None:
    """Play the smallest problem in a folder of its own; what is compiled stays where numba keeps it.

    A part that cannot be played so is named and left out: its stage compiles what it needs.
    """
    in_turn = [[[Step("log", "")]], [[Step("generate", name)] for name in params.scenarios], parts(params)]
    with (
        tempfile.TemporaryDirectory() as place,
        _processes(Path(place)) as pool,
        progress("compile, parts", sum(len(these) for these in in_turn)) as advance,
    ):
        small, done = smallest(params), 0
        for these in in_turn:
            for future in as_completed([pool.submit(play, small, steps) for steps in these]):
                done += 1
                advance(done)
                if said := future.result():
                    say(f"compile: left out {said}")


def parts(params: Params) -> list[list[Step]]:
    """Return what can be played side by side: the stages of each agent and of each scenario, the longest first."""
    found = [
        [Step(stage, agent) for stage in ("pretrain", "finetune", "evaluate")]
        + [Step("transfer", name) for name, row in params.transfers.items() if row.agent == agent]
        for agent in params.agents
    ]
    solved = params.hindsight.scenarios
    found += [
        [Step("heuristics", name), *([Step("hindsight", name)] if name in solved else [])] for name in params.scenarios
    ]
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
    for step in steps:
        try:
            stages[step.stage](params, step.subject)
        except FAULTS as error:
            return f"{step.stage} {step.subject}: {' '.join(str(error).split())}"
    return ""


@contextmanager
def _processes(place: Path) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that work in a folder; whoever stops early ends them."""
    count = min(MOST_PROCESSES, os.cpu_count() or 1)
    pool = ProcessPoolExecutor(count, mp.get_context("spawn"), _settle, (place, repository_root()))
    try:
        yield pool
    except BaseException:
        for child in mp.active_children():  # or a signal would wait for what is being compiled
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _settle(place: Path, root: Path) -> None:
    """Work in a folder of its own, unheard and untracked; the parent alone answers signals."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ |= {"PIPELINE_TRACKING": "off", "DVC_ROOT": str(root)}
    os.chdir(place)
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # as long as the process lives
