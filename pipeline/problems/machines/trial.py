"""A site's log, played whole under every policy, period by period: the evidence for advice.

A period is played from `warm_up_days` before its first job, so that it does not begin with an empty cluster; those jobs
are not counted. The site's present policy knows what its scheduler knows, the requested limits, whatever the scenario's
row says; only a log without limits leaves it exact run times. So do all heuristics, and where predictions can be made
from the log's training period, each is played once more with them (`PREDICTED`). The agent knows what its scenario's
row says, but never exact run times where there are limits. No episode is cut, and a model that lets time pass decides
again at the next event, as for a user's own jobs. Validation is also played with gaps between arrivals stretched and
compressed, only under heuristics: it shows at which loads the advice would differ.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import storage
from pipeline.core.config import MachinesLog, MachinesScenario, Params
from pipeline.core.config.machines.scenario import FIXED_ESTIMATES
from pipeline.core.logs.trace import DAY_S
from pipeline.core.logs.windows import periods
from pipeline.core.schemas.tables import BLOCK_DAYS
from pipeline.core.types import FloatArray, IntArray, keys
from pipeline.errors import UserError
from pipeline.execution.executor import Executor
from pipeline.problems.machines.env.evaluation.metrics import outcome
from pipeline.problems.machines.env.evaluation.play import play_on
from pipeline.problems.machines.env.nouns import Jobs, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.workload.park import unlimited
from pipeline.problems.machines.env.workload.windows import Fitted, fitted, read_log
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.policies import policy_by_name
from pipeline.problems.parts import Trial
from pipeline.progress import progress

OTHER_LOADS = (0.8, 1.2)  # times the log's own, at which validation is played as well
WEEK_S, BLOCK_S = 7 * DAY_S, BLOCK_DAYS * DAY_S
PREDICTIONS = "predictions"
PREDICTED = "{rule}+predictions"  # a heuristic that knows predicted run times
LEFT_OUT = ("random", "tetris")  # chance; and one that must be tuned on jobsets first


class Period(NamedTuple):
    """The jobs of a period, with those before it that are played and not counted."""

    jobs: Jobs  # the first arrives at 0
    counted: slice  # the jobs that count
    user: IntArray  # [J]
    share: FloatArray  # [J]  of all machines


class Play(NamedTuple):
    """One policy on one period."""

    split: str
    load: float  # times the log's own
    knows: str  # of run times: estimates, predictions, or durations where the log has no estimates
    rule: str  # a heuristic, or the directory of a model


Outcomes = tuple[FloatArray, FloatArray]  # wait and bounded slowdown of the jobs that count, [J] each


def trial(params: Params, name: str, workers: Executor) -> Trial:
    """Return the outcomes of heuristics and an agent on the validation and the test period of a site's log.

    Raises:
        UserError: its jobs do not come from a log, or a period has no job.
    """
    scenario, site = params.machines_scenario(name), params.sites[name]
    workload = scenario.workload
    if not isinstance(workload, MachinesLog) or workload.parts is not None:
        raise UserError(f"sites.{name}: expected a scenario of a log in periods, found jobs of another source")
    heuristics = [rule for rule in HEURISTICS if rule not in LEFT_OUT]
    if site.today not in heuristics:
        raise UserError(f"sites.{name}.today: expected one of {', '.join(heuristics)}, found '{site.today}'")
    with progress(f"read the log of {name}, percent", 100, brief=True) as advance:
        trace = read_log(workload, storage.scenario_log(name), advance)
    # By what policies know of run times; first, what the site's scheduler knows.
    predictable = trace.has_estimates and (trace.user >= 0).any() and scenario.dispatch not in FIXED_ESTIMATES
    predicted = predictable or scenario.policies_know == PREDICTIONS
    levels = ["estimates" if trace.has_estimates else "durations", *([PREDICTIONS] if predicted else [])]
    with progress(f"prepare the log of {name}", 1, brief=True):
        known = {
            knows: fitted(trace, workload, scenario.model_copy(update={"policies_know": knows})) for knows in levels
        }
    model = storage.model_folder(site.agent, "policy")
    policy_by_name(str(model), scenario, known[levels[0]].park, name)  # refuses it before hours of play
    own = scenario.policies_know if scenario.policies_know in known else levels[0]
    plays = [
        Play(split, load, knows, rule)
        for split in ("validation", "test")
        for load in (1.0, *(OTHER_LOADS if split == "validation" else ()))
        for knows in known
        for rule in (*heuristics, *([str(model)] if (load, knows) == (1.0, own) else []))
    ]
    played = partial(
        _played, known=known, scenario=scenario, warm_up_days=site.warm_up_days, name=name, seed=params.seed
    )
    with progress(f"trial of {name}, plays", len(plays)) as advance:
        found = workers.map(played, plays, [model], advance, resumable=True)
    frames = [
        _frame(_period(known[play.knows], workload, play.split, site.warm_up_days), play, outcomes, site.agent)
        for play, outcomes in zip(plays, found, strict=True)
    ]
    return Trial(pd.concat(frames, ignore_index=True), trace.has_estimates)


def _period(fit: Fitted, workload: MachinesLog, split: str, warm_up_days: float) -> Period:
    jobs = fit.jobs
    first, after = periods(len(jobs.arrival), workload)[split]
    if after - first < 1:
        raise UserError(f"workload: no job in the {split} period; read a longer log")
    begin = int(np.searchsorted(jobs.arrival, jobs.arrival[first] - warm_up_days * DAY_S))
    moved = Jobs._make(column[begin:after] for column in jobs)
    total = np.array(fit.park.capacity, dtype=np.int64).sum(axis=0)
    held = moved.nodes[:, None] * moved.demand / np.maximum(total, 1)
    moved = moved._replace(arrival=moved.arrival - moved.arrival[0])
    return Period(moved, slice(first - begin, None), fit.user[begin:after], held[:, total > 0].mean(axis=1))


def _played(
    play: Play, known: Mapping[str, Fitted], scenario: MachinesScenario, warm_up_days: float, name: str, seed: int
) -> Outcomes:
    """Return the outcomes of one policy on a period."""
    park = known[play.knows].park
    period = _period(known[play.knows], scenario.workload, play.split, warm_up_days)  # type: ignore[arg-type]
    policy = HEURISTICS.get(play.rule) or policy_by_name(play.rule, scenario, park, name)
    batch = end_to_end([period.jobs._replace(arrival=period.jobs.arrival / play.load)])
    machines, one = unlimited(scenario, park), np.zeros(1, dtype=np.int64)
    simulator = Simulator(batch, machines, np.zeros(len(batch.arrival)))  # rewards are not used
    for _ in play_on(simulator, policy, keys(seed, one, one)):
        pass
    found = outcome(batch, simulator.placed())
    return np.maximum(found.wait[period.counted], 0.0), found.bounded_slowdown[period.counted]


def _frame(period: Period, play: Play, outcomes: Outcomes, agent: str) -> pd.DataFrame:
    """Return the rows of TRIAL of one play."""
    counted = period.counted
    since = period.jobs.arrival[counted] - period.jobs.arrival[counted.start]
    name = agent if play.rule not in HEURISTICS else (PREDICTED if play.knows == PREDICTIONS else "{rule}")
    columns: Mapping[str, object] = {
        "period": play.split,
        "load": play.load,
        "policy": name.format(rule=play.rule),
        "job": np.arange(len(since)),
        "week": (since // WEEK_S).astype(np.int64),
        "block": (since // BLOCK_S).astype(np.int64),
        "user": period.user[counted].astype(np.int64),
        "run_s": period.jobs.duration[counted],
        "share": period.share[counted],
        "wait": outcomes[0],
        "bounded_slowdown": outcomes[1],
    }
    return pd.DataFrame(columns)
