"""`compile`: compile the code of all stages in advance by running them on minimal work, in one process per problem.

Numba numbers the files of a function without a lock, so two processes must not compile different versions of one
function. Problems share no compiled code except the choice among logits, which all problems call with the same types.
"""

import hashlib
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from pipeline.core.config import Params, repository_root
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.execution.commands import Commands, cores, environment, is_failure, reason
from pipeline.problems import scenarios_by_problem
from pipeline.progress import progress, say

LIMITS: Mapping[str, float] = {
    **{"train": 8, "test": 2, "jobsets": 8, "epochs": 1, "updates": 1, "episodes": 2},
    **{"population": 4, "elite": 2, "rounds": 1, "limit": 0.001, "futures": 2, "decisions": 100},
    "validation": 16,  # some networks use other code for 64 and more episodes
    "intervals": 8,
}
REQUEST, PLAYED = "parts.pickle", "played part "  # request file of a process, and the beginning of its answers
MARKS = "played"  # a folder next to the compiled code, with a file for each part that was played
Step = tuple[str, str]  # a stage, and its scenario, agent, transfer or plan


def smoke_test_params(params: Params) -> Params:
    """Return these parameters with minimal work, on one thread; networks and algorithms are unchanged."""
    raw = params.model_dump()
    for row in raw["scenarios"].values():
        row.update(_capped({name: row[name] for name in ("jobsets", "workload") if name in row}))
    raw |= {name: _capped(raw.get(name, {})) for name in ("agents", "heuristics", "hindsight", "plans")}
    return Params.model_validate(raw | {"threads": 1})


def _capped(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    return {
        name: min(one, LIMITS[name]) if name in LIMITS and isinstance(one, int | float) else _capped(one)
        for name, one in value.items()
    }


def run(params: Params) -> None:
    """Run minimal work in a temporary folder, so that numba compiles; parts that fail are left to their stages."""
    _play_all(smoke_test_params(params), [parts(params, names) for names in scenarios_by_problem(params).values()])


def first(params: Params, stages: Collection[str]) -> None:
    """Compile the code of some stages, unless it is compiled already: parallel stages would each compile it.

    Stages have DVC's names; those without compiled code are skipped. Raises UserError: a log is missing.
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
    """Play parts and mark each; one process plays the parts of one problem in sequence."""
    queues, played = sorted(by_problem, key=len, reverse=True), list[str]()
    given = environment(1) | {"DVC_ROOT": str(repository_root())}
    with (
        tempfile.TemporaryDirectory() as folder,
        progress("compile, parts", sum(len(queue) for queue in queues)) as advance,
        ThreadPoolExecutor(min(len(queues), cores())) as pool,
        Commands() as commands,
    ):

        def play_queue(place: int) -> int:
            output = list[str]()

            def on_line(line: str) -> None:
                output.append(line)
                if line.startswith(PLAYED):
                    number, _, error = line.removeprefix(PLAYED).partition(" ")
                    _set(_mark(small, queues[place][int(number)]))
                    played.append(error)
                    advance(len(played))
                    if error:
                        say(f"compile: left out {error}")

            work = Path(folder, str(place))
            work.mkdir()
            (work / REQUEST).write_bytes(pickle.dumps((small, queues[place])))
            code = commands.run([sys.executable, "-m", "pipeline.stages.compiling"], on_line, given, work)
            if is_failure(code):
                raise UserError(reason(output, code))
            return code

        for future in as_completed([pool.submit(play_queue, place) for place in range(len(queues))]):
            if future.result():
                say("compile: a process was killed, maybe for lack of memory; each stage compiles the rest")
                return


def _mark(small: Params, steps: Sequence[Step]) -> Path:
    """Return the file whose existence says that a part was played with these sources and parameter types."""
    rows, names = small.model_dump(mode="json"), {name for _, name in steps}
    for section in ("transfers", "plans", "agents"):  # rows that these rows name belong to the same part
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
    with suppress(OSError):  # without its mark, the part is played again next time
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
        except Exception as error:  # maybe too little work for this part; the stage itself reports real faults
            return f"{stage} {subject}: {type(error).__name__} {' '.join(str(error).split())}"
    return ""


def play_request() -> None:
    """Play the parts of the request in this folder, and report each on a line."""
    params, queue = pickle.loads(Path(REQUEST).read_bytes())
    if error := play(params, [("log", "")]):
        raise SystemExit(f"error: {error}")
    for number, steps in enumerate(queue):
        say(f"{PLAYED}{number} {play(params, steps)}")


if __name__ == "__main__":
    play_request()
