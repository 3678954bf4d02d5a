"""Evolution: CMA-ES on the weights of a policy (Hansen and Ostermeier 2001), with the library `cmaes`.

One unlucky decision may block a cluster for many steps, and a policy that samples its actions keeps making them. A
perturbed weight has the same effect throughout an episode, so that candidates differ in behaviour, not by chance.

`cmaes` has its own random generator, and its state cannot be saved without pickle. It is deterministic for a seed, so
the checkpoint holds the cost of every candidate, and resuming reports these costs again.
"""

from typing import Any

import numpy as np

from pipeline.core.types import FloatArray

DIAGONAL_FROM = 200  # weights; from this number on, covariances are not adapted: they take W^3 per generation


class Evolution:
    """A distribution of weights [W] that moves towards low cost; it begins with a mean and a standard deviation.

    A generation has `population` candidates. The attribute `mean` averages the centres of the latest generations (the
    share `averaged` of all), because a single centre wanders.
    """

    def __init__(self, mean: FloatArray, spread: float, population: int, seed: int, averaged: float = 0.0) -> None:
        from cmaes import CMA, SepCMA  # the import takes a second, and `site` and `report` do not need it

        kind = SepCMA if len(mean) >= DIAGONAL_FROM else CMA
        self._search = kind(mean=mean.astype(np.float64), sigma=spread, seed=seed, population_size=population)
        self._costs: list[FloatArray] = []
        self._centres, self._averaged = [mean.astype(np.float64)], averaged
        self._asked: FloatArray = np.empty(0)

    @property
    def mean(self) -> FloatArray:
        """Return the mean of the distribution's last centres [W]."""
        return np.asarray(np.mean(self._centres[-max(1, round(self._averaged * len(self._costs))) :], axis=0))

    def ask(self) -> FloatArray:
        """Return the candidates [population, W] of the next generation."""
        self._asked = np.array([self._search.ask() for _ in range(self._search.population_size)])
        return self._asked

    def tell(self, cost: FloatArray) -> None:
        """Move the distribution, given the cost of each candidate [population]; lower is better."""
        self._costs.append(np.asarray(cost, dtype=np.float64))
        self._search.tell([(weights, float(each)) for weights, each in zip(self._asked, cost, strict=True)])
        self._centres.append(np.array(self._search.mean))

    def state_dict(self) -> dict[str, Any]:
        """Return the costs of all generations so far [generations, population]."""
        import torch

        costs = np.array(self._costs).reshape(-1, self._search.population_size)
        return {"costs": torch.from_numpy(costs)}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Repeat the generations of a state in a new search."""
        for cost in state["costs"].numpy():
            self.ask()
            self.tell(cost)
