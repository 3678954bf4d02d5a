"""Canary: is the active policy worse than the fallback on the jobs that ended under it?

Jobs that ended are cut into windows by arrival. Each window is simulated under the policy and under the fallback; its
regret is (policy's mean wait - fallback's) / the larger of the two, between -1 and 1. The policy is withdrawn when the
confidence sequence of the mean over windows exceeds the tolerance. The rules are those of `watch` (params.yaml,
`gate.watch`), which are valid for any number of looks. Two simulations are compared, because Slurm's own counterfactual
is unknown; both have the same knowledge of the jobs.

It runs in a process of its own, so that its compilation and memory do not affect the controller:

    python -m pipeline.steering.canary FOLDER SCENARIO PLACE DIGEST WINDOW UNIT_S
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core.types import FloatArray, Json
from pipeline.errors import UserError

NO_WAIT_S = 1e-6  # a shorter wait counts as none
TIMEOUT_S = 600.0  # of the process


class CanaryResult(NamedTuple):
    """Result over the windows so far."""

    windows: int
    regret: float  # mean
    worse: bool


class Canary:
    """Counts jobs that ended, and has the policy judged after each full window."""

    def __init__(self, folder: Path, scenario: str, window: int, unit_s: float) -> None:
        self._words = [str(folder), scenario]
        self._window, self._unit_s = window, unit_s
        self.ended = window  # jobs since the last judgement; a window at first: the journal may have some already
        self._task: asyncio.Task[CanaryResult | str] | None = None

    async def look(self, place: str, digest: str) -> CanaryResult | str | None:
        """Return the result since the last look, or an error line; start the next judgement when a window is full."""
        found = None
        if self._task and self._task.done():
            found, self._task = self._task.result(), None
        if self._window and self.ended >= self._window and self._task is None:
            self.ended = 0
            self._task = asyncio.create_task(self._judge(place, digest))
        return found

    async def _judge(self, place: str, digest: str) -> CanaryResult | str:
        words = [*self._words, place, digest, str(self._window), str(self._unit_s)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pipeline.steering.canary", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, said = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
            return CanaryResult(*json.loads(out))
        except TimeoutError:
            return f"no answer within {TIMEOUT_S:g} s"
        except (ValueError, TypeError):
            return " ".join(said.decode(errors="replace").split())[-200:] or "it was killed"
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()  # otherwise the loop may be closed first, and asyncio warns

    async def close(self) -> None:
        """End a running judgement."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])


def rows_under(rows: Iterator[Mapping[str, Json]], digest: str) -> Iterator[Mapping[str, Json]]:
    """Yield the queues, and the jobs that ended under a policy since it was last withdrawn, if ever."""
    kept: list[Mapping[str, Json]] = []
    mine = False
    for row in rows:
        kind, pools = row.get("kind"), row.get("pools")
        naming = [row] if kind == "begin" else pools if kind == "tick" and isinstance(pools, list) else []
        digests = {one.get("digest") for one in naming if isinstance(one, Mapping)}
        mine = digests == {digest} if digests else mine and kind != "taken back"
        if not mine:
            kept = [one for one in kept if one["kind"] == "pool"]  # the nodes are the same under all policies
        if kind == "pool" or (kind in ("ran", "left") and mine):
            kept.append(row)
        elif kind == "tick" and mine:
            kept.append({"kind": kind, "time": row.get("time")})
    yield from kept


def regret(policy: FloatArray, fallback: FloatArray) -> float:
    """Return the regret of a window, from the waits of its jobs.

    >>> regret(np.array([2.0, 4.0]), np.array([1.0, 1.0])).__round__(3)
    0.667
    """
    mine, theirs = float(policy.mean()), float(fallback.mean())
    return (mine - theirs) / max(mine, theirs, NO_WAIT_S)


def judge(folder: Path, scenario: str, place: str, digest: str, window: int, unit_s: float) -> CanaryResult:
    """Judge a policy by the full windows of a folder's journal, in order of arrival.

    Windows are by arrival, not by end: otherwise jobs that a policy keeps waiting would be in windows of their own,
    in which it does no harm. Jobs that arrived after the first job that has not ended yet do not count.
    """
    from pipeline.comparing.resampling import seen_at
    from pipeline.core.config import load_params
    from pipeline.interactive.machines.scheduling import park_of
    from pipeline.problems.machines.heuristics.rules import HEURISTICS
    from pipeline.problems.machines.policies import policy_by_name
    from pipeline.steering.journal import rows
    from pipeline.steering.replay import ARRIVAL, BY_ARRIVAL, SLOTS, RecordedJob, read_recorded, replay_waits

    params = load_params()
    if params.gate is None:
        raise UserError("params.yaml: gate: expected, for gate.watch has the canary's rules; or give --canary 0")
    row, park, rules = params.machines_scenario(scenario), park_of(params, scenario), params.gate.watch
    both = [policy_by_name(place, row, park, scenario), HEURISTICS[ARRIVAL]]
    slots = row.slots if Path(place).is_dir() else SLOTS
    queues, jobs = read_recorded(folder, rows_under(rows(folder), digest))
    until = inf if not jobs or jobs[-1].open is None else jobs[-1].open
    windows: dict[int, list[RecordedJob]] = {}
    values = []
    for job in sorted(jobs, key=BY_ARRIVAL):
        k = next((k for k, nodes in enumerate(queues) if nodes.takes(job)), None)
        if k is None or job.eligible >= until:
            continue
        windows.setdefault(k, []).append(job)
        if len(windows[k]) == window:
            own = windows.pop(k)
            (mine, _), (theirs, _) = replay_waits(own, queues[k], both, params.seed, park.resources, slots, unit_s)
            values.append(regret(mine, theirs))
    found = np.array(values)
    seen = seen_at(found[None, :], np.ones(1), rules.tolerance, rules.level, rules.bound) if len(found) else None
    return CanaryResult(len(found), float(found.mean()) if len(found) else 0.0, seen is not None)


if __name__ == "__main__":
    folder, scenario, place, digest, window, unit_s = sys.argv[1:]
    try:
        found = judge(Path(folder), scenario, place, digest, int(window), float(unit_s))
    except UserError as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps(found) + "\n")
