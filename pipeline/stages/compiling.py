"""`compile`: have what the stages run compiled before they do, by playing the smallest problem; a process a problem.

Numba numbers the files of a function without a lock, so two processes must not compile different versions of one. They
do not: problems share nothing that is compiled but what chooses among logits, and all of them give that the same types.
"""

import hashlib
import json
import multiprocessing as mp
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.config import Params, repository_root
from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.execution.environment import end_with_parent
from pipeline.problems import scenarios_by_problem
from pipeline.progress import progress, say

AT_MOST: Mapping[str, float] = {
    "train": 8,
    "validation": 16,  # some networks decide for 64 and more episodes by other code
    "test": 2,
    "jobsets": 8,
    "epochs": 1,
    "updates": 1,
    "episodes": 2,
    "windows": 2,
    "latest": 20,
    "examined": 100,
    "population": 4,
    "elite": 2,
    "rounds": 1,
    "limit": 0.001,
    "futures": 2,
    "decisions": 100,
}
MARKS = "played"  # a folder beside the compiled code, with a file for each part that was played
Step = tuple[str, str]  # a stage, and the scenario, agent, transfer or plan that it is of


def smoke_test_params(params: Params) -> Params:
    """Return these parameters with as little to do as there can be, on one thread.

    Scenarios, networks and algorithms stay as they are: code is compiled for their types.
    """
    raw = params.model_dump()
    for row in raw["scenarios"].values():
        row["jobsets"] = _capped(row["jobsets"])
    raw |= {name: _capped(raw.get(name, {})) for name in ("agents", "heuristics", "hindsight", "plans")}
    return Params.model_validate(raw | {"threads": 1})


def _capped(value: Json) -> Json:
    """Return a part of the parameters, with no number above the one that `AT_MOST` has for its name."""
    if not isinstance(value, dict):
        return value
    return {
        name: min(one, AT_MOST[name]) if name in AT_MOST and isinstance(one, int | float) else _capped(one)
        for name, one in value.items()
    }


def run(params: Params) -> None:
    """Play the smallest problem in a folder of its own; what is compiled stays where numba keeps it.

    A part that cannot be played so is named and left out: its stage compiles what it needs.

    Raises:
        UserError: a log is not there.
    """
    _play_all(smoke_test_params(params), [parts(params, names) for names in scenarios_by_problem(params).values()])


def first(params: Params, stages: Collection[str]) -> None:
    """Have what some stages run compiled before they do, unless it is: several at once would compile it several times.

    Args:
        params: of params.yaml.
        stages: as DVC names them; what compiles nothing is passed over.

    Raises:
        UserError: a log is not there.
    """
    small = smoke_test_params(params)
    left = []
    for names in scenarios_by_problem(params).values():
        mine = parts(params, names)  # a problem's together, for those of an agent need the jobsets of its scenario
        run_now = [steps for steps in mine if {f"{stage}@{subject}" for stage, subject in steps} & set(stages)]
        if any(not _mark(small, steps).exists() for steps in run_now):
            left.append(mine)
    if left:
        say("farm: compiles what the stages run first (once; minutes where nothing is)")
        _play_all(small, left)


def _play_all(small: Params, by_problem: Sequence[list[list[Step]]]) -> None:
    """Play parts, those of a problem one after the other, and mark those that were played."""
    queues, done = sorted(by_problem, key=len, reverse=True), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        _processes(Path(folder), len(queues)) as pools,
        progress("compile, parts", sum(len(queue) for queue in queues)) as advance,
    ):
        if said := pools[0].submit(play, small, [("log", "")]).result():
            raise UserError(said)
        begun = {
            # the problem of most parts has one to itself
            pools[min(place, len(pools) - 1)].submit(play, small, steps): steps
            for place, queue in enumerate(queues)
            for steps in queue
        }
        for future in as_completed(begun):
            said = future.result()
            done += 1
            advance(done)
            _set(_mark(small, begun[future]))
            if said:
                say(f"compile: left out {said}")


def _mark(small: Params, steps: Sequence[Step]) -> Path:
    """Return the file that says that a part was played, with these sources, and parameters of this shape."""
    rows, names = small.model_dump(mode="json"), {name for _, name in steps}
    for section in ("transfers", "plans", "agents"):  # what they name is of the same part
        found = [row for name, row in rows.get(section, {}).items() if name in names]
        names |= {row[key] for row in found for key in ("agent", "scenario") if key in row}
    names |= {row["finetune"]["recipe"] for name, row in rows["agents"].items() if name in names}
    sections = ("transfers", "plans", "agents", "scenarios", "recipes")
    used = [{name: row for name, row in rows.get(section, {}).items() if name in names} for section in sections]
    said = json.dumps([steps, *map(_shape, (used, rows["workload"], rows["heuristics"]))], sort_keys=True)
    compiled = Path(os.environ.get("NUMBA_CACHE_DIR", "."))
    return compiled / MARKS / hashlib.sha256(said.encode()).hexdigest()[:16]


def _shape(value: Json) -> Json:
    """Return what code is compiled for of some parameters: words, and numbers by their types.

    >>> _shape({"name": "mlp", "hidden": 20, "rates": [0.1, 0.2]})
    {'name': 'mlp', 'hidden': 'int', 'rates': ['float', 'float']}
    """
    if isinstance(value, Mapping):
        return {key: _shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shape(one) for one in value]
    return type(value).__name__ if isinstance(value, int | float) and not isinstance(value, bool) else value


def _set(mark: Path) -> None:
    with suppress(OSError):  # then it is played again the next time
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def parts(params: Params, scenarios: Sequence[str]) -> list[list[Step]]:
    """Return what is played of some scenarios, in order; a part that cannot be played is left out, and no other."""
    found: list[list[Step]] = [[("generate", name)] for name in scenarios]
    found += [
        [("heuristics", name), *([("hindsight", name)] if name in params.hindsight.scenarios else [])]
        for name in scenarios
    ]
    for agent, row in params.agents.items():
        if row.scenario in scenarios:
            found.append([(stage, agent) for stage in ("pretrain", "finetune", "evaluate")])
    found += [[("transfer", name)] for name, row in params.transfers.items() if row.scenario in scenarios]
    return [*found, *([("plan", name)] for name, row in params.plans.items() if row.scenario in scenarios)]


def play(params: Params, steps: Sequence[Step]) -> str:
    """Run some stages in this process's folder; return what went wrong, or nothing."""
    from pipeline.stages import evaluate, finetune, generate, heuristics, hindsight, log, plan, pretrain, transfer

    stages: Mapping[str, Callable[[Params, str], None]] = {
        "log": lambda params, _: log.run(params),
        "generate": generate.run,
        "pretrain": pretrain.run,
        "finetune": finetune.run,
        "evaluate": evaluate.run,
        "transfer": transfer.run,
        "plan": plan.run,
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
def _processes(place: Path, most: int) -> Iterator[list[ProcessPoolExecutor]]:
    """Yield processes that work in a folder, each with a queue of its own; whoever stops early ends them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count, context = min(most, cores), mp.get_context("spawn")
    pools = [ProcessPoolExecutor(1, context, _settle, (place, repository_root())) for _ in range(count)]
    try:
        yield pools
    except BrokenProcessPool:
        say("compile: a process was ended from outside, maybe for want of memory; each stage compiles what is left")
    except BaseException:
        for child in mp.active_children():  # or a signal would wait for what is being compiled
            child.terminate()
        raise
    finally:
        for pool in pools:
            pool.shutdown(cancel_futures=True)


def _settle(place: Path, root: Path) -> None:
    """Work in a folder of its own, on one thread, no_progress and untracked; the parent alone answers Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    end_with_parent()
    os.environ |= {"PIPELINE_TRACKING": "off", "PIPELINE_EXECUTOR": "serial", "DVC_ROOT": str(root)}
    os.environ |= dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    os.chdir(place)
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # as long as the process lives


def _end(number: int, _: object) -> None:
    """End this process and its own at once: the pool would take an exception for the result of a part, and go on."""
    for child in mp.active_children():
        child.kill()
    os._exit(128 + number)
