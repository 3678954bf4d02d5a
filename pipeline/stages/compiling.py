"""`compile`: compile the code of all stages in advance by playing the smallest problem, one process for each problem.

Numba numbers the files of a function without a lock, so two processes must not compile different versions of one
function. Problems share no compiled code except the choice among logits, which all call with the same types.
"""

import hashlib
import json
import multiprocessing as mp
import os
import signal
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from pipeline.core.config import Params, repository_root
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.execution.environment import end_with_parent
from pipeline.problems import scenarios_by_problem
from pipeline.progress import progress, say

LIMITS: Mapping[str, float] = {
    **{
        "train": 8,
        "test": 2,
        "jobsets": 8,
        "epochs": 1,
        "updates": 1,
        "episodes": 2,
    },
    **{"population": 4, "elite": 2, "rounds": 1, "limit": 0.001, "futures": 2, "decisions": 100},
    "validation": 16,  # some networks use other code for 64 and more episodes
}
MARKS = "played"  # a folder next to the compiled code, with a file for each part that was played
Step = tuple[str, str]  # a stage, and its scenario, agent, transfer or plan


def smoke_test_params(params: Params) -> Params:
    """Return these parameters with minimal work, on one thread.

    Scenarios, networks and algorithms are unchanged: code is compiled for their types.
    """
    raw = params.model_dump()
    for row in raw["scenarios"].values():
        row["jobsets"] = _capped(row["jobsets"])
    raw |= {name: _capped(raw.get(name, {})) for name in ("agents", "heuristics", "hindsight", "plans")}
    return Params.model_validate(raw | {"threads": 1})


def _capped(value: Json) -> Json:
    """Reduce the numbers that have a limit in `LIMITS`."""
    if not isinstance(value, dict):
        return value
    return {
        name: min(one, LIMITS[name]) if name in LIMITS and isinstance(one, int | float) else _capped(one)
        for name, one in value.items()
    }


def run(params: Params) -> None:
    """Play the smallest problem in a temporary folder; numba keeps the compiled code.

    A part that cannot be played is reported and skipped: its stage compiles what it needs.

    Raises:
        UserError: a log is missing.
    """
    _play_all(smoke_test_params(params), [parts(params, names) for names in scenarios_by_problem(params).values()])


def first(params: Params, stages: Collection[str]) -> None:
    """Compile the code of some stages unless it is compiled: parallel stages would each compile it.

    Args:
        params: of params.yaml.
        stages: names as DVC has them; stages without compiled code are skipped.

    Raises:
        UserError: a log is missing.
    """
    small = smoke_test_params(params)
    left = []
    for names in scenarios_by_problem(params).values():
        mine = parts(params, names)  # all of a problem, because an agent's part needs the jobsets of its scenario
        run_now = [steps for steps in mine if {f"{stage}@{subject}" for stage, subject in steps} & set(stages)]
        if any(not _mark(small, steps).exists() for steps in run_now):
            left.append(mine)
    if left:
        say("farm: compiling the code of the stages first (once; takes minutes from scratch)")
        _play_all(small, left)


def _play_all(small: Params, by_problem: Sequence[list[list[Step]]]) -> None:
    """Play parts, those of one problem in sequence, and mark each."""
    queues, done = sorted(by_problem, key=len, reverse=True), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        _processes(Path(folder), len(queues)) as pools,
        progress("compile, parts", sum(len(queue) for queue in queues)) as advance,
    ):
        if error := pools[0].submit(play, small, [("log", "")]).result():
            raise UserError(error)
        begun = {
            # the problem with the most parts has a process of its own
            pools[min(place, len(pools) - 1)].submit(play, small, steps): steps
            for place, queue in enumerate(queues)
            for steps in queue
        }
        for future in as_completed(begun):
            error = future.result()
            done += 1
            advance(done)
            _set(_mark(small, begun[future]))
            if error:
                say(f"compile: left out {error}")


def _mark(small: Params, steps: Sequence[Step]) -> Path:
    """Return the file whose existence says that a part was played with these sources and parameter types."""
    rows, names = small.model_dump(mode="json"), {name for _, name in steps}
    for section in ("transfers", "plans", "agents"):  # rows that these name belong to the same part
        found = [row for name, row in rows.get(section, {}).items() if name in names]
        names |= {row[key] for row in found for key in ("agent", "scenario") if key in row}
    names |= {row["finetune"]["recipe"] for name, row in rows["agents"].items() if name in names}
    sections = ("transfers", "plans", "agents", "scenarios", "recipes")
    used = [{name: row for name, row in rows.get(section, {}).items() if name in names} for section in sections]
    content = json.dumps([steps, *map(_shape, (used, rows["workload"], rows["heuristics"]))], sort_keys=True)
    compiled = Path(os.environ.get("NUMBA_CACHE_DIR", "."))
    return compiled / MARKS / hashlib.sha256(content.encode()).hexdigest()[:16]


def _shape(value: Json) -> Json:
    """Return what compilation depends on: words, and the types of numbers.

    >>> _shape({"name": "mlp", "hidden": 20, "rates": [0.1, 0.2]})
    {'name': 'mlp', 'hidden': 'int', 'rates': ['float', 'float']}
    """
    if isinstance(value, Mapping):
        return {key: _shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shape(one) for one in value]
    return type(value).__name__ if isinstance(value, int | float) and not isinstance(value, bool) else value


def _set(mark: Path) -> None:
    with suppress(OSError):  # it is played again the next time
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def parts(params: Params, scenarios: Sequence[str]) -> list[list[Step]]:
    """Return the parts of some scenarios in order; a part that fails does not affect the others."""
    hindsight = {name: [("hindsight", name)] for name in params.hindsight.scenarios}
    agents = [name for name, row in params.agents.items() if row.scenario in scenarios]
    return [
        *([("generate", name)] for name in scenarios),
        *([("heuristics", name), *hindsight.get(name, [])] for name in scenarios),
        *([(stage, agent) for stage in ("pretrain", "finetune", "evaluate")] for agent in agents),
        *([("transfer", name)] for name, row in params.transfers.items() if row.scenario in scenarios),
        *([("plan", name)] for name, row in params.plans.items() if row.scenario in scenarios),
    ]


def play(params: Params, steps: Sequence[Step]) -> str:
    """Run some stages in this process's folder; return an error message, or an empty string."""
    for stage, subject in steps:
        try:
            import_module(f"pipeline.stages.{stage}").run(params, *filter(None, [subject]))
        except UserError as error:
            return str(error) if stage == "log" else f"{stage} {subject}: {error}"
        except Exception as error:  # the problem is too small for this part; the stage itself reports real faults
            return f"{stage} {subject}: {type(error).__name__} {' '.join(str(error).split())}"
    return ""


@contextmanager
def _processes(place: Path, most: int) -> Iterator[list[ProcessPoolExecutor]]:
    """Yield single processes that work in a folder, each with its own queue; an early exit ends them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count, context = min(most, cores), mp.get_context("spawn")
    pools = [ProcessPoolExecutor(1, context, _settle, (place, repository_root())) for _ in range(count)]
    try:
        yield pools
    except BrokenProcessPool:
        say("compile: a process was killed, maybe for lack of memory; each stage compiles the rest")
    except BaseException:
        for child in mp.active_children():  # otherwise a signal would wait for the compiler
            child.terminate()
        raise
    finally:
        for pool in pools:
            pool.shutdown(cancel_futures=True)


def _settle(place: Path, root: Path) -> None:
    """Work in a temporary folder on one thread, without output and tracking; only the parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    end_with_parent()
    os.environ |= {"PIPELINE_TRACKING": "off", "PIPELINE_EXECUTOR": "serial", "DVC_ROOT": str(root)}
    os.environ |= dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    os.chdir(place)
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # open as long as the process lives


def _end(number: int, _: object) -> None:
    """End this process and its children at once: the pool would store an exception as a result and continue."""
    for child in mp.active_children():
        child.kill()
    os._exit(128 + number)
