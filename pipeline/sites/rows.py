"""Rows of params.yaml for a site's log: its machines, how it is replayed, and on request an agent that learns from it.

The first 40 % of the jobs are for training, the next 20 % for validation, the last 40 % for the test, which needs many
weeks because only weeks are independent. Policies know users' estimates if the log has them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from pipeline.core.config import MachinesLog, MachinesScenario, Params, repository_root
from pipeline.core.config.evaluation import LEAST
from pipeline.core.config.records import Frozen, first_error
from pipeline.core.logs.plausible import ESTIMATES, implausible, word
from pipeline.core.logs.trace import DAY_S, Trace
from pipeline.core.logs.windows import periods
from pipeline.core.schemas.tables import BLOCK_DAYS
from pipeline.core.types import THOUSANDTHS, Json
from pipeline.errors import UserError
from pipeline.problems.machines.env.workload.windows import NO_MACHINE, Fitted, fitted

TRAIN, VALIDATION = 0.4, 0.2
LEAST_DAYS = 14.0  # of the test period
WINDOW = 200  # jobs of a jobset
LEAST_JOBS = 2 * WINDOW  # of the validation period
SLOTS = 64
TESTS = 20  # test jobsets if the gate requires no number
MOST_MISFITS = 0.05  # share of jobs that fit on none of the machines
RECIPE = "ppo"


class SiteRows(NamedTuple):
    """Rows of params.yaml for advising a site."""

    scenario: Mapping[str, Json]
    agents: dict[str, dict[str, Json]]  # by name; empty, or one
    site: Mapping[str, Json]
    fewer: Mapping[str, Json]  # entry of `gate.fewer`; empty if the gate's rules are met anyway
    windows: int  # independent windows of the test period


def site_rows(
    name: str, log: Path, format: str, trace: Trace, machines: Sequence[str], params: Params,
    confirmed: bool = False, learns: bool = False, nodes: Path | None = None, settings: Mapping[str, Json] = {},
    outages: Sequence[Path] = (),
) -> SiteRows:  # fmt: skip
    """Return the rows for a log; for a known site, its rows with the new log.

    The rows contain `log` as the path of the log and `nodes` as that of its file of machines, if it has one. Files of
    `outages` replace those of the row. `settings` are keys of the site's row that follow from its Slurm configuration.

    `machines` are groups named by the user, such as "4 cpu=64,memory=256"; if empty, those of the site's row or the log
    are used. `confirmed` accepts what is implausible in the log; `learns` adds an agent that is trained on it.

    Raises:
        UserError: the log is too short or implausible, its machines are unknown, or the agent's recipe is missing.
    """
    agent = f"{name}_{RECIPE}"
    learns = learns or agent in params.agents
    if learns and RECIPE not in params.recipes:
        raise UserError(f"params.yaml: recipes: expected '{RECIPE}', the recipe of the site's agent")
    known, park = name in params.sites, [_group(text) for text in machines]
    row = _known(params, name) if known else _scenario(trace)
    row |= {"machines": park or _park(trace)} if park or nodes or not known else {}
    row["workload"] |= {"format": format, "path": str(log)}
    if nodes or "nodes" in row["workload"]:
        row["workload"]["nodes"] = str(nodes) if nodes else None
    if outages or ("outages" in row["workload"] and not nodes):
        row["workload"]["outages"] = list(map(str, outages))
    try:
        scenario = MachinesScenario.model_validate(row)
    except ValidationError as error:
        raise UserError(first_error(error, row, "--machines" if machines else str(log))) from error
    fit, doubts = _usable(trace, scenario, log, confirmed, known)
    if words := set(map(word, doubts)) - {ESTIMATES}:  # ESTIMATES is confirmed by `policies_know: durations`
        row["workload"]["accept"] = sorted({*row["workload"].get("accept", ()), *words})
    old, load = list(scenario.loads), max(1, round(100 * fit.own_load))
    loads = old if known and len(old) > 1 else [load]  # several were set by the user
    agents: dict[str, dict[str, Json]] = {}
    if learns:
        own = _row_of(params.agents[agent]) if agent in params.agents else _agent_row(name, load)
        for part in ("pretrain", "finetune"):
            if own[part].get("loads") == old:
                own[part]["loads"] = loads
        agents[agent] = own
    independent = _windows(fit, scenario.workload)  # type: ignore[arg-type]
    tests, fewer = _tests(name, independent, scenario, params)
    return SiteRows(
        scenario={**row, "loads": loads, "jobsets": {**row["jobsets"], "test": tests}},
        agents=agents,
        site={**(_row_of(params.sites[name]) if known else {"today": "fcfs"}), **settings},
        fewer=fewer,
        windows=independent,
    )


def known_nodes(params: Params, site: str, format: str) -> Path | None:
    """Return the file of nodes that the site's row names for a log of this format."""
    workload = params.machines_scenario(site).workload if site in params.sites else None
    known = isinstance(workload, MachinesLog) and workload.format == format and workload.nodes
    return repository_root() / known if known else None


def _windows(fit: Fitted, workload: MachinesLog) -> int:
    """Return the number of independent windows of the test period: disjoint, at most one per BLOCK_DAYS days."""
    first, after = periods(len(fit.jobs.arrival), workload)["test"]
    days = (fit.jobs.arrival[after - 1] - fit.jobs.arrival[first]) / DAY_S
    return int(min((after - first) // workload.window, days // BLOCK_DAYS))


def _row_of(record: Frozen) -> dict[str, Any]:
    """Return a record as a row of params.yaml."""
    return record.model_dump(mode="json", exclude_unset=True)


def _usable(
    trace: Trace, scenario: MachinesScenario, log: Path, confirmed: bool, known: bool
) -> tuple[Fitted, list[str]]:
    """Return a log as jobs of the machines, and what is implausible in it and confirmed.

    Raises:
        UserError: it is too short, or implausible and not confirmed.
    """
    jobs, days = len(trace.id), (trace.submit_s[-1] - trace.submit_s[0]) / DAY_S
    last = trace.submit_s[round((TRAIN + VALIDATION) * jobs) :]
    test_days = (last[-1] - last[0]) / DAY_S if len(last) else 0.0
    short = ""
    if test_days < LEAST_DAYS:
        more = int(np.ceil((LEAST_DAYS - test_days) / (1 - TRAIN - VALIDATION)))
        short = (
            f"cannot tell: of {days:.1f} days of log the last {1 - TRAIN - VALIDATION:.0%} are {test_days:.1f}; "
            f"expected at least {LEAST_DAYS:g}: about {more} more days"
        )
    elif jobs * VALIDATION < LEAST_JOBS:
        short = f"cannot tell: the log has {jobs} jobs; expected at least {int(LEAST_JOBS / VALIDATION)}"
    try:
        fit = fitted(trace, scenario.workload, scenario)  # type: ignore[arg-type]
    except UserError as error:
        raise UserError(short) if short else error from error
    jobs, left = len(fit.jobs.arrival), fit.left_out[NO_MACHINE]
    total = np.array(fit.park.capacity).sum(axis=0) / THOUSANDTHS
    accepted = {*scenario.workload.accept, *((ESTIMATES,) if known else ())}  # type: ignore[union-attr]
    found = implausible(trace, dict(zip(fit.park.resources, total.tolist(), strict=True)))
    doubts = [doubt for doubt in found if word(doubt) not in accepted]
    if left > MOST_MISFITS * (jobs + left) and "misfits" not in accepted | set(map(word, doubts)):
        doubts.append(f"misfits: {left:,} of {jobs + left:,} jobs {NO_MACHINE}")
    said = [f"{log}: {'; '.join(doubts)}: correct the log, name its --machines, or accept it by --yes"]
    if wrong := [*([short] if short else []), *(said if doubts and not confirmed else [])]:
        raise UserError("; ".join(wrong))
    return fit, doubts


def _tests(name: str, independent: int, scenario: MachinesScenario, params: Params) -> tuple[int, dict[str, int]]:
    """Return the number of test jobsets, and the entry of `gate.fewer` if the gate requires more.

    It is the number of independent windows, up to the number that the gate requires. A number set by the user is kept.
    """
    rules, old = params.gate, scenario.jobsets.test
    count = min(independent, rules.jobsets if rules else TESTS)
    if count < LEAST or rules is None or old not in (TESTS, rules.needed(name)):
        return old, {}
    return count, {name: count} if count < rules.jobsets or name in rules.fewer else {}


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


def _park(trace: Trace) -> list[dict[str, Json]]:
    """Return groups of the log's identical machines; of a pool only its processors."""
    if trace.machines is None:
        raise UserError(
            "the log does not name its machines: give them, as --machines '4 cpu=64,memory=256', or the output of "
            "'scontrol show node' as --nodes"
        )
    capacity, names, kinds = trace.machines.capacity, trace.machines.resources, trace.kind_names
    pooled = len(capacity) == 1 and kinds == ("",)
    wanted = [r for r in range(len(names)) if r == 0 or (not pooled and capacity[:, r].any())]
    rows = zip(trace.machines.kind.tolist(), capacity[:, wanted].tolist(), strict=True)
    park = list[dict[str, Json]]()
    for (kind, *amounts), count in Counter((kind, *amounts) for kind, amounts in rows).items():
        has = {names[r]: amount / THOUSANDTHS for r, amount in zip(wanted, amounts, strict=True)}
        park.append({"count": count, "has": has, **({"kind": kinds[kind]} if len(kinds) > 1 else {})})
    return park


def _known(params: Params, name: str) -> dict[str, Any]:
    """Return a known site's scenario with only the keys that the user set."""
    row = _row_of(params.machines_scenario(name))
    if row["workload"]["name"] != "log":
        raise UserError(f"params.yaml: scenarios.{name}.workload: expected a log, found jobs of another source")
    return row


def _scenario(trace: Trace) -> dict[str, Any]:
    cut = {"window": WINDOW, "train_share": TRAIN, "validation_share": VALIDATION}
    return {
        "problem": "machines",
        "machines": [],
        "slots": SLOTS,
        "dispatch": "easy_dynamic",
        "policies_know": "estimates" if trace.has_estimates else "durations",
        "pause": 16,
        "time_limit": 1_000_000,
        "workload": {"name": "log", "format": "", "path": "", **cut},
        "loads": [100],
        "jobsets": {"train": 20, "validation": 10, "test": TESTS},
    }


def _agent_row(name: str, load: int) -> dict[str, Any]:
    effort = {"updates": 40, "jobsets": 6, "episodes": 4, "validate_every": 10}
    return {
        "problem": "machines",
        "scenario": name,
        "objective": "bounded_slowdown",
        "network": {"name": "deepsets", "hidden": 32},
        "pretrain": {"name": "none"},
        "finetune": {"name": "ppo", "recipe": RECIPE, "loads": [load], **effort},
    }
