"""Rows about judging policies: intervals, external policies, the gate for champions, and sites to advise."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.core.config.records import Frozen, Many, Name, Share

if TYPE_CHECKING:
    from pipeline.core.config.params import Params

LEAST = 10  # independent jobsets; fewer have no interval
Level = Annotated[float, Field(gt=0, lt=0.5)]
Growth = Annotated[float, Field(ge=0, le=100)]  # share of today's

Points = Annotated[int, Field(ge=0, lt=2**32)]
Days = Annotated[float, Field(gt=0, le=36_500)]
NAME = r"[A-Za-z_]\w*"
WORD = re.compile(rf"({NAME}(\.{NAME})*|.+\.py):{NAME}|.+\.(zip|onnx)")
EXPECTED = "expected package.module:name, path/to/file.py:name, a .zip of Stable-Baselines3 or an .onnx file"
MODELS = (".zip", ".onnx")
FILES = (".py", *MODELS)


class Evaluation(Frozen):
    """The paired bootstrap of the comparison."""

    resamples: Annotated[int, Field(ge=100, le=1_000_000)]  # of the paired bootstrap
    confidence: Annotated[float, Field(gt=0.5, lt=1)]  # of the intervals, 0.95 for 95 %


def place_of(word: str) -> str:
    """Return the module or file of an external policy's word.

    >>> place_of("mine.policies:choose"), place_of("a/b.py:choose"), place_of("a:b.zip")
    ('mine.policies', 'a/b.py', 'a:b.zip')
    """
    return word if word.endswith(MODELS) else word.rpartition(":")[0]


def _word(value: str) -> str:
    if not WORD.fullmatch(value):
        raise ValueError(f"{EXPECTED}, got {value!r}")
    return value


class External(Frozen):
    """An external policy, scored on a scenario's test jobsets."""

    problem: Literal["pool", "machines", "groups"]  # of the scenario
    scenario: Name  # its test jobsets are played
    # package.module:name or path/to/file.py:name of a callable, a .zip of Stable-Baselines3 or an .onnx file.
    policy: Annotated[str, AfterValidator(_word)]
    files: tuple[str, ...] = ()  # other files that it reads, such as weights; changes make its results stale
    objective: Literal["slowdown", "delay"]  # measure by which it is judged; default: delay for groups, else slowdown
    limit_ms: Annotated[float, Field(gt=0)] = 10.0  # time limit of a decision, on average over a batch

    @model_validator(mode="before")
    @classmethod
    def _default_objective(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        return {"objective": "delay" if raw.get("problem") == "groups" else "slowdown", **raw}


class Watch(Frozen):
    """Conditions for an alarm of `watch` about a champion."""

    level: Level  # chance of an alarm without regret, over any number of looks
    # Mean regret without an alarm. The regret of a window is the champion's loss against the best heuristic, relative
    # to the worse of the two.
    tolerance: Share
    bound: Annotated[float, Field(gt=0, le=1)]  # limit of one window's regret, above and below 0
    plan: Annotated[float, Field(gt=0, le=1)]  # regret to detect, which sets the number of windows needed


class Gate(Frozen):
    """Conditions for a candidate to become the champion, declared before its results are known."""

    jobsets: Annotated[Many, Field(ge=LEAST)]  # least number of independent jobsets, or windows, of each load
    # Smaller numbers for some scenarios, by name.
    fewer: dict[Name, Annotated[Many, Field(ge=LEAST)]]
    level: Level  # chance to promote a candidate that is no better, over all candidates of a scenario (Holm)
    margin: Share  # share of the champion's mean over all loads by which a candidate must be better
    load_margin: Share  # share of the champion's mean by which it may be worse at any one load, with its interval
    tail_margin: Share  # the same for the 99th percentile, over all loads
    watch: Watch  # alarms about the champion

    def needed(self, scenario: str) -> int:
        """Return the number of independent jobsets that each load of a scenario needs."""
        return self.fewer.get(scenario, self.jobsets)


def too_few(params: "Params", scenario: str) -> str:
    """Return why no candidate of a scenario can pass the gate, whatever the results; "" if one can."""
    tests = params.scenario(scenario).jobsets.test
    if params.gate is None or tests >= (needed := params.gate.needed(scenario)):
        return ""
    why = f"{needed} independent jobsets a load are needed, scenarios.{scenario}.jobsets.test is {tests}"
    return f"gate: {scenario}: no candidate can pass: {why}: raise it, or set gate.fewer.{scenario}"


class Vetoes(Frozen):
    """How much longer waits may become under an advised order, as shares of today's."""

    longest: Growth = 0.1  # the longest wait
    p99: Growth = 0.1  # the 99th percentile of waits
    large: Growth = 0.25  # the mean wait of jobs that hold more than a tenth of the processors


class Multifactor(Frozen):
    """Weights of a site's Slurm, as `scontrol show config` prints them; `site --config` reads them."""

    age: Points = 0  # PriorityWeightAge
    age_days: Days = 7.0  # PriorityMaxAge
    fair_share: Points = 0  # PriorityWeightFairShare
    period_s: Annotated[float, Field(ge=0, le=86_400)] = 300.0  # PriorityCalcPeriod
    fair_tree: bool = True  # without NO_FAIR_TREE in PriorityFlags
    users: Annotated[int, Field(ge=0, le=1_000_000)] = 0  # with equal shares; at least those of the log count
    half_life_days: Days = 7.0  # PriorityDecayHalfLife
    job_size: Points = 0  # PriorityWeightJobSize
    favor_small: bool = False  # PriorityFavorSmall
    partition: Points = 0  # PriorityWeightPartition
    qos: Points = 0  # PriorityWeightQOS


class Backfilling(Frozen):
    """How jobs start before others of higher priority. The defaults are Slurm's; `site --config` reads a site's."""

    reservations: Many = 500  # maximum number in each partition (bf_job_part_count_reserve); 1 is EASY
    tested: Many = 500  # waiting jobs that may start, in order of priority (bf_max_job_test)
    window_h: Annotated[float, Field(gt=0, le=100_000)] = 24.0  # no reservation is further ahead (bf_window)
    interval_s: Annotated[float, Field(ge=0, le=86_400)] = 30.0  # between passes that backfill (bf_interval); 0: always


class Partition(Frozen):
    """A partition of a site's Slurm, as `scontrol show partition` prints it; `site --partitions` reads it."""

    tier: Points = 1  # PriorityTier: jobs of a higher one come first, whatever their priority
    factor: Points = 1  # PriorityJobFactor
    qos: str = ""  # its QoS, whose quotas count the partition's jobs, too


class Quota(Frozen):
    """Limits on what running jobs hold together, from a QOS or an association; `site --quotas` reads them."""

    # All these jobs together, or those of each user, account, or user of an account.
    each: Literal["all", "user", "account", "association"] = "all"
    qos: str = ""  # only jobs of this QOS or of partitions with it; replaces quotas without a QOS (as in Slurm)
    over_partition: bool = False  # for jobs of this QOS, replaces quotas of their partition's QOS (flag OverPartQOS)
    accounts: tuple[str, ...] = ()  # only jobs of these accounts
    users: tuple[int, ...] = ()  # only jobs of these users, as numbers of the log; replaces quotas of all users
    cpus: Annotated[int, Field(ge=1)] | None = None  # GrpTRES=cpu=..., MaxTRESPerUser, MaxTRESPerAccount
    jobs: Annotated[int, Field(ge=1)] | None = None  # GrpJobs, MaxJobsPerUser, MaxJobsPerAccount, MaxJobs


class Qos(Frozen):
    """A QOS of a site's Slurm."""

    name: str  # as in the log
    priority: Points  # its Priority; PriorityWeightQOS multiplies its share of the highest one


class Site(Frozen):
    """A site whose queue is to be advised."""

    today: Name = "fcfs"  # the order of its queue now
    slurm: Multifactor | None = None  # weights of its priority/multifactor; `today: multifactor` is their order
    backfill: Backfilling = Backfilling()  # jobs that start before others of higher priority
    partitions: dict[str, Partition] = Field(default={})  # by name; those that are not listed have tier and factor 1
    qos: tuple[Qos, ...] = ()  # priorities of QOS, 0 for others; `site --quotas` reads them
    quotas: tuple[Quota, ...] = ()  # jobs beyond them wait without a reservation
    warm_up_days: Annotated[float, Field(ge=0, le=365)] = 7.0  # days that are replayed before a period, but not counted
    most: Vetoes = Vetoes()  # accepted growth of waits
