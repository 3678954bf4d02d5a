"""`schedule`: run policies over a user's own jobs, write when each job starts, and compare the policies' means."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipeline.core.config import Params
from pipeline.core.storage.user_tables import user_table
from pipeline.errors import UserError
from pipeline.external.guard import PolicyError
from pipeline.interactive.scheduling.schedule import ScheduleRequest, added, schedule
from pipeline.lookahead.planner import PREFIX
from pipeline.problems import problem_of
from pipeline.progress import say

MEASURES = ("slowdown", "bounded_slowdown", "wait")  # columns of a schedule, if its problem has them
IDS = ("jobset", "job", "group", "queue", "machine")
Means = dict[str, float]  # of a schedule, by column


def run(
    params: Params, request: ScheduleRequest, policies: Sequence[str], as_data: bool = False
) -> tuple[dict[str, Means], list[str]]:
    """Write a schedule for each policy; return means, if several or `as_data`, and a table of them, if several."""
    how = problem_of(params, request.scenario).schedule
    several = len(policies) > 1
    places = [place_of(request.out, policy) if several else request.out for policy in policies]
    for place, count in Counter(places).items():
        if count > 1:
            raise UserError(f"--policy: {count} policies would write {place}: name each once")
    found, failed = dict[str, Means](), list[PolicyError]()
    for policy, place in zip(policies, places, strict=True):
        try:
            schedule(how, params, request._replace(policy=policy, out=place))
        except PolicyError as error:
            failed.append(error)
        else:
            found[policy] = means(place) if several or as_data else {}
    lines = list(table(found)) if several else []
    if failed:
        say(*lines, *(f"error: {error}" for error in failed[:-1]))
        raise failed[-1]
    return {policy: {f"mean_{name}": value for name, value in row.items()} for policy, row in found.items()}, lines


def place_of(out: Path, policy: str) -> Path:
    """Return the file of one policy's schedule among several.

    >>> place_of(Path("mine/plan.csv.gz"), "models/deeprm3").as_posix()
    'mine/plan_deeprm3.csv.gz'
    >>> place_of(Path("mine.csv"), "plan_models/deeprm3").as_posix()
    'mine_plan_deeprm3.csv'
    """
    model = Path(policy).name
    title = f"{PREFIX}{model}" if policy.startswith(PREFIX) and policy != model else model
    return added(out, title.replace(":", "_"))


def means(place: Path) -> Means:
    """Return the mean of each measure over the started jobs of a written schedule."""
    sums, count = dict.fromkeys(MEASURES, 0.0), dict.fromkeys(MEASURES, 0)
    for rows, _ in user_table(place, IDS):
        for name in (name for name in MEASURES if name in rows):
            sums[name] += float(rows[name].sum())
            count[name] += int(rows[name].count())
    return {name: sums[name] / count[name] for name in MEASURES if count[name]}


def table(found: Mapping[str, Means]) -> Iterator[str]:
    """Yield the lines of a table, sorted by the first measure.

    >>> for line in table({"fcfs": {"slowdown": 3.0, "wait": 2.5}, "sjf": {"slowdown": 1.25, "wait": 10.0}}):
    ...     print(line)
    policy  mean slowdown  mean wait
    sjf              1.25         10
    fcfs                3        2.5
    """
    names = [name for name in MEASURES if any(name in row for row in found.values())]
    heads = [f"mean {name.replace('_', ' ')}" for name in names]
    wide = max(len(word) for word in ("policy", *found))
    yield "  ".join(["policy".ljust(wide), *heads])
    not_started = float("inf")
    for policy, row in sorted(found.items(), key=lambda one: one[1].get(names[0], not_started) if names else 0):
        cells = [f"{row[name]:.4g}" if name in row else "-" for name in names]
        yield "  ".join([policy.ljust(wide), *(cell.rjust(len(head)) for cell, head in zip(cells, heads, strict=True))])
