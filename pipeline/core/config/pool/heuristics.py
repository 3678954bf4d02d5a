"""Heuristics of a pooled cluster: their tuning, policies that look ahead, and schedules with hindsight."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.core.config.pool.scenario import PoolScenario
from pipeline.core.config.records import Frozen, Many, Name, Share
from pipeline.errors import UserError


class LinearRuleSearch(Frozen):
    """Search for the weights of the heuristic `linear`: the cross-entropy method."""

    population: Annotated[int, Field(ge=2, le=10_000)]  # candidates of a round
    rounds: Annotated[int, Field(gt=0, le=10_000)]  # of candidates
    elite: Annotated[int, Field(gt=0)]  # the best of a round, around which the next ones are drawn

    @model_validator(mode="after")
    def _some_are_best(self) -> "LinearRuleSearch":
        if self.elite > self.population:
            raise ValueError(f"expected elite at most population ({self.population}), got {self.elite}")
        return self


class PoolKnobs(Frozen):
    """Candidates of each tuned number."""

    linear: LinearRuleSearch | None = None  # None: its weights are not searched
    # Weights of alignment in `tetris`; 1 / duration has the rest.
    tetris_weights: Annotated[tuple[Share, ...], Field(min_length=1)]
    # Quantiles of the training jobs' durations: `hold` may hold back longer jobs.
    hold_quantiles: Annotated[tuple[Share, ...], Field(min_length=1)]
    # Steps until which `hold_until` may hold long jobs back; none: not tuned.
    hold_until: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(exclude_if=lambda steps: not steps)] = ()


class PoolPlan(Frozen):
    """A policy that tries each action in the simulator before it takes one, scored on a scenario's test jobsets."""

    problem: Literal["pool"]  # the scenario's
    scenario: str  # of a pooled cluster
    base: str  # the policy to improve, which also plays the futures: a heuristic, as tuned there, or an agent
    # Number of candidate actions: the base's own, and an agent's preferred ones; for a rule, void and the first jobs.
    candidates: Annotated[int, Field(ge=2, le=1000)]
    futures: Annotated[int, Field(ge=1, le=10_000)]  # of each load, drawn beforehand and shared by all actions
    ahead: Many  # maximum steps of each future; 1000000 plays to the end where policies know when arrivals end
    left_job: Annotated[float, Field(ge=0)]  # cost of a job that still waits then, in mean costs of a step
    left_work: Annotated[float, Field(ge=0)]  # cost of work left then that fills the cluster for a step, as above
    decisions: Annotated[int, Field(ge=1)]  # maximum simulated for one decision; for an agent, only its own count
    min_z: Annotated[float, Field(ge=0)]  # standard errors by which an action must be better than the base's own


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError(f"expected each scenario once, got {list(names)}")
    return names


class Hindsight(Frozen):
    """Schedules found with full knowledge of the jobs."""

    scenarios: Annotated[tuple[Name, ...], AfterValidator(_each_once)]  # of pooled clusters
    jobsets: Many  # the first test jobsets of each load; all where there are fewer
    limit: Annotated[float, Field(gt=0)]  # deterministic time units per jobset


def must_be_solvable(where: str, name: str, scenario: PoolScenario) -> None:
    """Refuse, with a UserError, a scenario that cannot be solved in hindsight: a stream, or one that places ahead."""
    if scenario.measured is not None:
        raise UserError(f"{where}: '{name}': expected runs of which all jobs count, found a stream")
    if scenario.place_ahead:
        raise UserError(f"{where}: '{name}': expected place_ahead false, found {str(scenario.place_ahead).lower()}")
