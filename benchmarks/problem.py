"""Measured problems. They do not depend on params.yaml, so that figures can be compared."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.core.config import (
    AtOnce,
    Cnn,
    Counts,
    Demand,
    Mlp,
    PoolScenario,
    Recipe,
    Streaming,
    Synthetic,
)
from pipeline.problems.pool.agents.training.task import Task
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.env.workload.synthetic import draw_jobset

WORKLOAD = Synthetic(name="synthetic", short=(1, 3), long=(10, 15), short_share=0.8)
DEMAND = Demand(dominant=(0.5, 1.0), other=(0.1, 0.2))
UNITS, HORIZON, BACKLOG = 10, 20, 60
LEEWAY = 40  # an episode is cut after this many times the steps with arrivals

DEEPRM = Mlp(name="mlp", hidden=20, clock=False)
DEEPRM2 = Cnn(name="cnn", channels=(8, 16), hidden=72, clock=True)

# DeepRM's recipe: every action may be drawn, RMSprop, baseline at the same decision.
PAPER = Recipe(
    algorithm="reinforce",
    jobsets="fixed",
    baseline="decision",
    masked=False,
    play="sampled",
    optimizer="rmsprop",
    learning_rate=0.001,
    gamma=1.0,
    entropy=0.0,
    normalise=False,
    clip=None,
    minibatches=1,
)


@dataclass(frozen=True)
class Problem:
    """An iteration of REINFORCE; the paper's by default."""

    jobsets: int = 100
    episodes: int = 20  # of each jobset
    slots: int = 10
    steps: int = 50  # in which jobs arrive; if all wait at once, the step at which the episode is cut
    resources: int = 2
    load: int = 130  # percent
    arrivals: Literal["bernoulli", "poisson"] = "bernoulli"
    waiting: int = 0  # jobs that wait at step 0, instead of arrivals
    seed: int = 1

    @property
    def cluster(self) -> Cluster:
        """Return the cluster."""
        return Cluster((UNITS,) * self.resources, HORIZON, self.slots, BACKLOG, place_ahead=False)

    @property
    def step_limit(self) -> int:
        """Return the step limit of an episode."""
        return self.steps if self.waiting else LEEWAY * self.steps

    def draw(self) -> list[JobSet]:
        """Draw the jobsets."""
        return [self.one(number) for number in range(self.jobsets)]

    def one(self, number: int) -> JobSet:
        """Draw a jobset; a third resource has the demands of the first, a fourth those of the second, and so on."""
        rng = np.random.default_rng([self.seed, number])
        jobs = draw_jobset(WORKLOAD, DEMAND, self._scenario(), self.load, rng)
        return JobSet(jobs.arrival, jobs.duration, jobs.demand[:, np.arange(self.resources) % 2])

    def task(self, recipe: Recipe = PAPER) -> Task:
        """Return the training task."""
        jobsets = self.draw()
        return Task(
            cluster=self.cluster,
            step_limit=self.step_limit,
            objective="slowdown",
            recipe=recipe,
            seed=self.seed,
            loads=[self.load],
            train={self.load: jobsets},
            validation={},
            fresh=lambda load, number: jobsets[number % len(jobsets)],
            stream=lambda split, load, number, steps: jobsets[number % len(jobsets)],
        )

    def _scenario(self) -> PoolScenario:
        return PoolScenario(
            problem="pool",
            resources={"cpu": UNITS, "memory": UNITS},
            horizon=HORIZON,
            slots=self.slots,
            backlog=max(BACKLOG, self.waiting),
            place_ahead=False,
            step_limit=self.step_limit,
            demand="code",
            arrivals=(
                AtOnce(name="at_once", jobs=self.waiting)
                if self.waiting
                else Streaming(name=self.arrivals, steps=self.steps)
            ),
            loads=(self.load,),
            jobsets=Counts(train=1, validation=1, test=1),
        )
