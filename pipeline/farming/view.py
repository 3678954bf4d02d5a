"""What people see of a farm: lines of stages under their names, and now and then where all of it is."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pipeline.farming.asking import beside
from pipeline.farming.plan import Plan
from pipeline.progress import say

LONGEST_NAMES = 8  # of stages that are listed


def show(name: str, line: str) -> None:
    """Show a line of a stage; what DVC says beside is left out."""
    if not beside(line):
        say(f"{name} | {line}")


def status(plan: Plan, workers: int, now_s: float, at: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return where a farm is: what is done and what runs, since when, and the time left as far as it is known.

    Args:
        plan: of the farm.
        workers: how many may run at the same time.
        now_s: the time, as the plan knows it.
        at: the stage that each is at, of what has several.
    """
    running = ", ".join(
        f"{name}{f' ({at[name]})' if at.get(name, name) != name else ''} {now_s - since:.0f} s"
        for name, since in plan.running.items()
    )
    left_s, unknown = plan.left_s(workers, now_s)
    left = f"{'at least' if unknown else 'about'} {left_s:.0f} s left" if left_s >= 1 else "time left unknown"
    return f"farm: {len(plan.done)} of {plan.total} done; {running}; {left}"


def reason(lines: Sequence[str], code: int) -> str:
    """Return why a stage failed, on one line: its own error, else the signal that ended it, else its last line.

    >>> reason(["error: params.yaml: no such key", "ERROR: failed to reproduce 'gate'"], 255)
    'params.yaml: no such key'
    >>> reason(["gate: started"], -9)
    'ended by signal 9'
    """
    own = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if own:
        return own[-1]
    if code < 0:
        return f"ended by signal {-code}"
    return lines[-1].removeprefix("ERROR: ") if lines else f"exit code {code}"


def summary(fates: Mapping[str, str], took_s: float, worked_s: float) -> str:
    """Return what a farm did: of how many stages DVC decided what, and how long they would have taken one by one."""
    counts: dict[str, int] = {}
    for what in fates.values():
        counts[what] = counts.get(what, 0) + 1
    said = ", ".join(f"{count} {what}" for what, count in counts.items()) or "nothing to do"
    return f"farm: {said}; {took_s:.0f} s, of stages {worked_s:.0f} s"


def some(names: Sequence[str]) -> str:
    """Return the first of some names."""
    return ", ".join(names[:LONGEST_NAMES]) + (", ..." if len(names) > LONGEST_NAMES else "")


def failure(plan: Plan) -> str:
    """Return what failed, and what waits for it."""
    failed, blocked = ", ".join(sorted(plan.failed)), sorted(plan.blocked)
    wait = f"; {len(blocked)} wait for it: {some(blocked)}" if blocked else ""
    return f"farm: {failed} failed{wait}; the others are kept: put it right and run again"
