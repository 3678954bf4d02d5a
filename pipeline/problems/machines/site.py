"""Rows of params.yaml for a site's log: its machines, how it is replayed, and an agent that learns from it.

The first 40 % of the jobs are trained on, the next 20 % chosen by, the last 40 % tell the advice: half of a log is too
little to tell it of where weeks are what is independent. Jobs that do not fit are dispatched as EASY does, and users'
estimates are what policies know, where the log has them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from pipeline.config import MachinesScenario, Params
from pipeline.config.records import first_problem
from pipeline.core import THOUSANDTHS, Json
from pipeline.errors import UserError
from pipeline.logs.trace import DAY_S, Trace
from pipeline.problems import SiteRows
from pipeline.problems.machines.workload.windows import fitted

TRAIN, VALIDATION = 0.4, 0.2
LEAST_DAYS = 14.0  # of the test period
WINDOW = 200  # jobs of a jobset
LEAST_JOBS = 2 * WINDOW  # of the validation period
SLOTS = 64
RECIPE = "ppo"


def site_rows(name: str, log: Path, format: str, trace: Trace, machines: Sequence[str], params: Params) -> SiteRows:
    """Return the scenario, the agent and the row of `sites` of a log.

    Args:
        name: of the scenario.
        log: as params.yaml should name it.
        format: of the log.
        trace: the log.
        machines: as "4 cpu=64,memory=256"; none: as the log tells.
        params: those that the rows are for.

    Raises:
        UserError: the log is too short to tell of, its machines are unknown, or no recipe of that name is there.
    """
    if RECIPE not in params.recipes:
        raise UserError(f"params.yaml: recipes: expected '{RECIPE}', which the site's agent learns by; it is not there")
    _must_be_long(trace)
    park = [_group(text) for text in machines] or _groups_of(trace)
    row = _scenario(park, log, format, trace.has_estimates)
    try:
        scenario = MachinesScenario.model_validate(row)
    except ValidationError as error:
        raise UserError(first_problem(error, row, "--machines" if machines else str(log))) from error
    load = max(1, round(100 * fitted(trace, scenario.workload, scenario).own_load))  # type: ignore[arg-type]
    agent = f"{name}_{RECIPE}"
    return SiteRows(
        scenario={**row, "loads": [load]},
        agent=agent,
        agent_row=_agent(name, load),
        site={"today": "fcfs", "agent": agent},
    )


def _must_be_long(trace: Trace) -> None:
    """Refuse a log that no advice could be told of, and say how much longer it must be."""
    jobs, days = len(trace.id), (trace.submit_s[-1] - trace.submit_s[0]) / DAY_S
    last = trace.submit_s[round((TRAIN + VALIDATION) * jobs) :]
    test_days = (last[-1] - last[0]) / DAY_S if len(last) else 0.0
    if test_days < LEAST_DAYS:
        more = int(np.ceil((LEAST_DAYS - test_days) / (1 - TRAIN - VALIDATION)))
        raise UserError(
            f"cannot tell: of {days:.1f} days of log the last {1 - TRAIN - VALIDATION:.0%} are {test_days:.1f}; "
            f"expected at least {LEAST_DAYS:g}: about {more} more days"
        )
    if jobs * VALIDATION < LEAST_JOBS:
        raise UserError(f"cannot tell: the log has {jobs} jobs; expected at least {int(LEAST_JOBS / VALIDATION)}")


def _group(text: str) -> dict[str, Json]:
    """Return a group of machines.

    >>> _group("4 cpu=64,memory=256")
    {'count': 4, 'has': {'cpu': 64.0, 'memory': 256.0}}
    """
    count, _, has = text.partition(" ")
    pairs = [pair.partition("=") for pair in has.split(",")]
    try:
        return {"count": int(count), "has": {name.strip(): float(amount) for name, _, amount in pairs}}
    except ValueError:
        raise UserError(f"--machines: expected as '4 cpu=64,memory=256', found '{text}'") from None


def _groups_of(trace: Trace) -> list[dict[str, Json]]:
    """Return the machines that a log tells of, alike ones together; of one pool, its processors alone."""
    if trace.machines is None:
        raise UserError("the log does not say what its machines are: name them, as --machines '4 cpu=64,memory=256'")
    found = trace.machines
    wanted = list(range(len(found.resources))) if len(found.capacity) > 1 else [0]
    alike = Counter(tuple(int(row[r]) for r in wanted) for row in found.capacity)
    return [
        {
            "count": count,
            "has": {found.resources[r]: amount / THOUSANDTHS for r, amount in zip(wanted, amounts, strict=True)},
        }
        for amounts, count in alike.items()
    ]


def _scenario(park: Sequence[Mapping[str, Json]], log: Path, format: str, estimates: bool) -> dict[str, Json]:
    return {
        "problem": "machines",
        "machines": list(park),
        "slots": SLOTS,
        "dispatch": "easy_anew",
        "policies_know": "estimates" if estimates else "durations",
        "pause": 16,
        "time_limit": 1_000_000,
        "workload": {
            "name": "log",
            "format": format,
            "path": str(log),
            "window": WINDOW,
            "train_share": TRAIN,
            "validation_share": VALIDATION,
        },
        "loads": [100],
        "jobsets": {"train": 20, "validation": 10, "test": 20},
    }


def _agent(name: str, load: int) -> dict[str, Json]:
    return {
        "problem": "machines",
        "scenario": name,
        "objective": "bounded_slowdown",
        "network": {"name": "deepsets", "hidden": 32},
        "pretrain": {"name": "none"},
        "finetune": {
            "name": "ppo",
            "recipe": RECIPE,
            "loads": [load],
            "updates": 40,
            "jobsets": 6,
            "episodes": 4,
            "validate_every": 10,
        },
    }
