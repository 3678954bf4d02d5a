"""A site's log, played whole under every policy, period by period: what an advice is made of.

A period is played from `warm_up_days` before its first job, so that it does not begin with an empty cluster; those jobs
are not counted. Where policies are told users' estimates, heuristics are played once more, told run times that are
predicted from the log's training period (`PREDICTED`). No episode is cut, and a model that lets time pass is asked
again at the next event, as where a user's own jobs are scheduled. Validation is also played with gaps between arrivals
stretched and compressed, under heuristics alone: it tells at which loads the advice would be another.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.config import MachinePark, MachinesLog, MachinesScenario, Params
from pipeline.core import LOG_NAME, NODES_NAME, FloatArray, IntArray, Policy, keys
from pipeline.errors import UserError
from pipeline.logs.registry import read
from pipeline.logs.trace import DAY_S, Trace
from pipeline.logs.windows import periods
from pipeline.problems.machines.evaluation.metrics import outcome
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead.playing import play_on
from pipeline.problems.machines.nouns import Jobs, end_to_end
from pipeline.problems.machines.policies import policy_by_name
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.workload.park import unlimited
from pipeline.problems.machines.workload.windows import Fitted, fitted
from pipeline.progress import progress
from pipeline.schemas.trial import BLOCK_DAYS

OTHER_LOADS = (0.8, 1.2)  # times the log's own, at which validation is played as well
WEEK_S, BLOCK_S = 7 * DAY_S, BLOCK_DAYS * DAY_S
AS_TOLD = "{rule}"  # what the scenario says
PREDICTED = "{rule}+predictions"  # a heuristic that is told predicted run times
LEFT_OUT = ("random", "tetris")  # chance; and one that must be tuned on jobsets first


class Period(NamedTuple):
    """The jobs of a period, with those before it that are played and not counted."""

    name: str
    jobs: Jobs  # the first arrives at 0
    counted: int  # the first job that is
    user: IntArray  # [J]
    share: FloatArray  # [J]  of all machines


class Play(NamedTuple):
    """One policy on one period."""

    split: str
    load: float  # times the log's own
    told: str  # AS_TOLD or PREDICTED, of run times
    rule: str
    policy: Policy


def trial(params: Params, name: str) -> pd.DataFrame:
    """Return TRIAL of a site: heuristics and its agent on the validation and the test period of its log.

    Raises:
        UserError: its jobs do not come from a log, or a period has no job.
    """
    scenario, site = params.machines_scenario(name), params.sites[name]
    workload = scenario.workload
    if not isinstance(workload, MachinesLog) or workload.parts is not None:
        raise UserError(f"sites.{name}: expected a scenario of a log in periods, found jobs of another source")
    trace = _read(name, workload)
    fit = fitted(trace, workload, scenario)
    model = str(storage.model_folder(site.agent, "policy"))
    agent = policy_by_name(model, scenario, fit.park, name)
    heuristics = {rule: policy for rule, policy in HEURISTICS.items() if rule not in LEFT_OUT}
    if site.today not in heuristics:
        raise UserError(f"sites.{name}.today: expected one of {', '.join(heuristics)}, found '{site.today}'")
    known = {AS_TOLD: fit} | _predicted(trace, workload, scenario)
    plays = [
        Play(split, load, told, rule, policy)
        for split in ("validation", "test")
        for load in (1.0, *(OTHER_LOADS if split == "validation" else ()))
        for told in known
        for rule, policy in (heuristics | ({site.agent: agent} if (load, told) == (1.0, AS_TOLD) else {})).items()
    ]
    found = []
    with progress(f"trial of {name}, plays", len(plays)) as advance:
        for play in plays:
            period = _period(known[play.told], workload, play.split, site.warm_up_days)
            found.append(_played(period, play, scenario, fit.park, params.seed))
            advance(len(found), f"{play.split}, {play.rule}")
    return pd.concat(found, ignore_index=True)


def _predicted(trace: Trace, workload: MachinesLog, scenario: MachinesScenario) -> dict[str, Fitted]:
    """Return the log as policies meet it that are told predictions, where it has what they are made of."""
    if scenario.policies_know != "estimates" or (trace.user < 0).all():
        return {}
    return {PREDICTED: fitted(trace, workload, scenario.model_copy(update={"policies_know": "predictions"}))}


def _read(name: str, workload: MachinesLog) -> Trace:
    folder = storage.scenario_log(name)
    nodes = None if workload.nodes is None else (folder / NODES_NAME).resolve()
    path, instances = (folder / LOG_NAME).resolve(), workload.instances
    with progress(f"read the log of {name}, percent", 100, brief=True) as advance:
        return read(path, workload.format, advance, nodes=nodes, instances=instances, per_node=workload.per_node)


def _period(fit: Fitted, workload: MachinesLog, split: str, warm_up_days: float) -> Period:
    jobs = fit.jobs
    first, after = periods(len(jobs.arrival), workload)[split]
    if after - first < 1:
        raise UserError(f"workload: no job in the {split} period; read a longer log")
    begin = int(np.searchsorted(jobs.arrival, jobs.arrival[first] - warm_up_days * DAY_S))
    some = slice(begin, after)
    moved = Jobs._make(column[some] for column in jobs)
    total = np.array(fit.park.capacity, dtype=np.int64).sum(axis=0)
    held = moved.nodes[:, None] * moved.demand / np.maximum(total, 1)
    return Period(
        split,
        moved._replace(arrival=moved.arrival - moved.arrival[0]),
        first - begin,
        fit.user[some],
        held[:, total > 0].mean(axis=1),
    )


def _played(period: Period, play: Play, scenario: MachinesScenario, park: MachinePark, seed: int) -> pd.DataFrame:
    """Return the rows of TRIAL of one policy."""
    jobs = period.jobs._replace(arrival=period.jobs.arrival / play.load)
    batch, machines = end_to_end([jobs]), unlimited(scenario, park)
    nobody = np.zeros(len(batch.arrival))  # learns: presence costs nothing
    simulator, one = Simulator(batch, machines, nobody), np.zeros(1, dtype=np.int64)
    for _ in play_on(simulator, play.policy, keys(seed, one, one)):
        pass
    found, counted = outcome(batch, simulator.placed(), machines), slice(period.counted, None)
    since = period.jobs.arrival[counted] - period.jobs.arrival[period.counted]
    columns: Mapping[str, object] = {
        "period": period.name,
        "load": play.load,
        "policy": play.told.format(rule=play.rule),
        "job": np.arange(len(since)),
        "week": (since // WEEK_S).astype(np.int64),
        "block": (since // BLOCK_S).astype(np.int64),
        "user": period.user[counted].astype(np.int64),
        "run_s": jobs.duration[counted],
        "share": period.share[counted],
        "wait": np.maximum(found.wait[counted], 0.0),
        "bounded_slowdown": found.bounded_slowdown[counted],
    }
    return pd.DataFrame(columns)
