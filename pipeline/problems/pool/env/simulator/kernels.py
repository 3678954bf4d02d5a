"""Compiled decisions: each carries out one action, then the forced moves, in many episodes at once."""

from pipeline.core.types import IntArray
from pipeline.problems.pool.env.simulator.dynamics import admit, earliest_start, pass_one_step, place, update_fits
from pipeline.problems.pool.env.simulator.state import Rules, State
from pipeline.simulation.compiled import Span, inlined, threaded

NONE = -1  # no action: only the forced moves


@inlined
def carry_out(s: State, rules: Rules, b: int, action: int) -> None:
    """Carry out one decision: start a job, or let a step pass."""
    begin = earliest_start(s, rules, b, action) if action < s.slot_job.shape[1] and s.slot_job[b, action] >= 0 else -1
    if begin < 0:
        pass_one_step(s, rules, b)
    else:
        place(s, rules, b, action, begin)
    over = s.finished[b] == s.first[b + 1] - s.first[b] or s.unstarted[b] == 0
    s.done[b] = over or s.now[b] >= rules.step_limit


@inlined
def idle(s: State, rules: Rules, b: int) -> bool:
    """Return whether no job holds a unit in any step of the horizon (core.idle)."""
    for t in range(s.free.shape[1] if rules.place_ahead else 1):
        row = s.head[b] + t
        if row >= s.free.shape[1]:
            row -= s.free.shape[1]
        for r in range(s.capacity.shape[0]):
            if s.free[b, row, r] != s.capacity[r]:
                return False
    return True


@inlined
def may_pass(s: State, rules: Rules, b: int) -> bool:
    """Return whether void is legal (core.legal_actions)."""
    return bool(s.fitting[b] == 0 or s.now[b] - s.last_arrival[b] < rules.stall or not idle(s, rules, b))


@inlined
def _forced_move(s: State, rules: Rules, b: int) -> int:
    """Return the only legal action of an episode, or -1 where there is a choice (core.legal_actions)."""
    if s.placeable[b] == 0:
        return int(s.slot_job.shape[1])
    if s.placeable[b] == 1 and not may_pass(s, rules, b):
        for m in range(s.slot_job.shape[1]):
            if s.legal[b, m]:
                return m
    return -1


@inlined
def advance_episode(s: State, rules: Rules, b: int, action: int) -> None:
    """Carry out one decision, or NONE, and then the forced moves if those are skipped."""
    while True:
        if action >= 0:
            carry_out(s, rules, b, action)
        if not rules.skip_forced or s.done[b]:
            return
        # Skip all but the last of the steps without any job: job tables of users may begin at step 10^9.
        if s.present[b] == 0 and s.rewards.shape[1] == 0 and s.to_come[b] < s.first[b + 1]:
            s.now[b] = max(s.now[b], min(s.arrival[s.to_come[b]], rules.step_limit) - 1)
        action = _forced_move(s, rules, b)
        if action < 0:
            return


@threaded(lambda s, rules: len(s.now))
def begin_all(span: Span, s: State, rules: Rules) -> None:
    """Reveal the jobs of step 0 and advance every episode to its first choice."""
    for b in range(*span):
        admit(s, b)
        update_fits(s, rules, b, -1)
        advance_episode(s, rules, b, NONE)


@threaded(lambda s, rules, rows, *_: len(rows))
def step_rows(span: Span, s: State, rules: Rules, rows: IntArray, actions: IntArray) -> int:
    """Carry out one decision in each of some episodes; return how many of them are over."""
    over = 0
    for i in range(*span):
        advance_episode(s, rules, rows[i], actions[i])
        over += s.done[rows[i]]
    return over
