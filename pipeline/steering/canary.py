"""Has the policy fallen behind the fallback? Asked while it orders, of the jobs that ended under it.

Jobs that ended are cut into windows by arrival. The simulator plays each window twice, under the
policy and under the fallback; its regret is (policy's mean wait - fallback's) / the longer of the two, between -1 and
1. When the confidence sequence of the windows' mean says that it is above the tolerance, the policy is taken back: by
rules declared for `watch` (params.yaml, `gate.watch`), however often one looks. What is compared is two plays, for
nobody knows what Slurm would have done; both know the same of the jobs.

A process of its own, so that what it compiles or holds is none of the controller's:

    python -m pipeline.steering.canary FOLDER SCENARIO PLACE DIGEST WINDOW UNIT_S
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.core import FloatArray, Json

if TYPE_CHECKING:
    from pipeline.steering.replaying import Nodes, Ran

NOTHING_S = 1e-6  # a wait that is none
ENDED_S = 600.0  # in which a process has judged


class Judged(NamedTuple):
    """What the windows so far say."""

    windows: int
    regret: float  # mean
    behind: bool

    @property
    def says(self) -> str:
        """Return it in words."""
        return f"{self.windows} windows, mean regret {100 * self.regret:+.1f} %"


class Canary:
    """Counts jobs that ended, and has them judged window by window."""

    def __init__(self, folder: Path, scenario: str, window: int, unit_s: float) -> None:
        self._words = [str(folder), scenario]
        self._window, self._unit_s, self._ended = window, unit_s, window  # at once: a journal may have windows already
        self._task: asyncio.Task[Judged | str] | None = None

    def ended(self, count: int) -> None:
        """Count jobs that ended."""
        self._ended += count

    async def look(self, place: str, digest: str) -> Judged | str | None:
        """Return what was found since the last look, a line if that failed; begin anew where a window is full."""
        found = None
        if self._task and self._task.done():
            found, self._task = self._task.result(), None
        if self._window and self._ended >= self._window and self._task is None:
            self._ended = 0
            self._task = asyncio.create_task(self._judge(place, digest))
        return found

    async def _judge(self, place: str, digest: str) -> Judged | str:
        words = [*self._words, place, digest, str(self._window), str(self._unit_s)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pipeline.steering.canary", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, said = await asyncio.wait_for(process.communicate(), ENDED_S)
            return Judged(*json.loads(out))
        except TimeoutError:
            return f"no answer within {ENDED_S:g} s"
        except (ValueError, TypeError):
            return " ".join(said.decode(errors="replace").split())[-200:] or "it was killed"
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()  # else the loop may be closed first, and asyncio warns

    async def close(self) -> None:
        """End what is still judged."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])


def since(rows: Iterator[Mapping[str, Json]], digest: str) -> Iterator[Mapping[str, Json]]:
    """Yield the jobs that ended since a policy decides, and the queues; since it was taken back, if it was."""
    kept: list[Mapping[str, Json]] = []
    mine = False
    for row in rows:
        kind, pools = row.get("kind"), row.get("pools")
        told = [row] if kind == "begin" else pools if kind == "tick" and isinstance(pools, list) else []
        digests = {one.get("digest") for one in told if isinstance(one, Mapping)}
        mine = digests == {digest} if digests else mine and kind != "taken back"
        if not mine:
            kept = [one for one in kept if one["kind"] == "pool"]  # the nodes are the same under all policies
        if kind == "pool" or (kind in ("ran", "left") and mine):
            kept.append(row)
        elif kind == "tick" and mine:
            kept.append({"kind": kind, "time": row.get("time")})
    yield from kept


def regret(policy: FloatArray, fallback: FloatArray) -> float:
    """Return the regret of a window, by what each job waits.

    >>> regret(np.array([2.0, 4.0]), np.array([1.0, 1.0])).__round__(3)
    0.667
    """
    mine, theirs = float(policy.mean()), float(fallback.mean())
    return (mine - theirs) / max(mine, theirs, NOTHING_S)


def judged(folder: Path, scenario: str, place: str, digest: str, window: int, unit_s: float) -> Judged:
    """Return what the windows of a folder's journal say of a policy.

    Raises:
        UserError: there is no journal, or no such policy.
    """
    from pipeline.comparing.sequences import seen_at
    from pipeline.config import load_params
    from pipeline.errors import UserError
    from pipeline.problems.machines.heuristics.rules import HEURISTICS
    from pipeline.problems.machines.policies import policy_by_name
    from pipeline.problems.machines.user_jobs import park_of
    from pipeline.steering.journal import rows
    from pipeline.steering.replaying import ARRIVAL, SLOTS, recorded, waits

    params = load_params()
    if params.gate is None:
        raise UserError("params.yaml: gate: expected, for gate.watch has the canary's rules; or give --canary 0")
    row, park, rules = params.machines_scenario(scenario), park_of(params, scenario), params.gate.watch
    both = [policy_by_name(place, row, park, scenario), HEURISTICS[ARRIVAL]]
    slots = row.slots if Path(place).is_dir() else SLOTS
    queues, jobs = recorded(folder, since(rows(folder), digest))
    values = []
    for nodes, own in _windows(queues, jobs, window):
        (mine, _), (theirs, _) = waits(own, nodes, both, params.seed, park.resources, slots, unit_s)
        values.append(regret(mine, theirs))
    found = np.array(values)
    seen = seen_at(found[None, :], np.ones(1), rules.tolerance, rules.level, rules.bound) if len(found) else None
    return Judged(len(found), float(found.mean()) if len(found) else 0.0, seen is not None)


def _windows(queues: Sequence["Nodes"], jobs: Sequence["Ran"], window: int) -> Iterator[tuple["Nodes", list["Ran"]]]:
    """Yield the full windows of all queues in the order of arrival, of jobs before which none is still there.

    By their ends, the jobs that a policy keeps waiting are in windows of their own, where it does no harm.
    """
    until = inf if not jobs or jobs[-1].open is None else jobs[-1].open
    open_: dict[int, list[Ran]] = {}
    for job in sorted(jobs, key=lambda one: one.arrival):
        k = next((k for k, nodes in enumerate(queues) if nodes.takes(job)), None)
        if k is None or job.eligible >= until:
            continue
        own = open_.setdefault(k, [])
        own.append(job)
        if len(own) == window:
            yield queues[k], open_.pop(k)


def main(words: Sequence[str]) -> int:
    """Judge, and say it as JSON."""
    from pipeline.errors import UserError

    folder, scenario, place, digest, window, unit_s = words
    try:
        found = judged(Path(folder), scenario, place, digest, int(window), float(unit_s))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
