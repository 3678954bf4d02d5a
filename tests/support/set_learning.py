"""A problem of seconds for DeepRM3: short runs and streams, and a small network."""

from typing import Any

from builders import REPOSITORY, TINY, tiny_task
from ruamel.yaml import YAML

from pipeline.config import Mixture, Params, PoolAgent, Recipe, StreamWindows
from pipeline.config import Sets as SetsConfig
from pipeline.problems.pool.networks.networks import build
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.training.task import Task

WINDOWS = StreamWindows(loads=(80, 100), slots=(5, 3), windows=2, latest=6, steps=4, beyond=5)
BRIEF = Mixture(
    name="mixture",
    recipe="gradient",
    loads=(120,),
    updates=2,
    jobsets=3,
    episodes=3,
    streams=WINDOWS,
    validate_every=1,
)


def gradient() -> Recipe:
    """The recipe of networks `sets`."""
    return Recipe.model_validate(_rows()["recipes"]["gradient"])


def with_gradient(params: Params, name: str = "gradient") -> Params:
    """Parameters that have an agent with a network `sets`, too."""
    agent = PoolAgent.model_validate(_rows()["agents"]["gradient"])
    recipes = {**params.recipes, "gradient": gradient()}
    return params.model_copy(update={"agents": {**params.agents, name: agent}, "recipes": recipes})


def _rows() -> Any:
    return YAML(typ="safe").load(REPOSITORY / "tests" / "support" / "gradient.yaml")


def set_task(recipe: Recipe, seed: int = 3) -> Task:
    """The tiny problem, with streams."""
    return tiny_task(recipe, seed=seed)._replace(streams=WINDOWS)


def sets(hidden: int = 8, elapsed: bool = False, seed: int = 2, ending: bool = False) -> Sets:
    """An untrained network; it knows no size of a cluster."""
    network = build(SetsConfig(name="sets", hidden=hidden, elapsed=elapsed, ending=ending), Cluster.of(TINY), seed)
    assert isinstance(network, Sets)
    return network


def content(network: Sets) -> dict[str, bytes]:
    """All weights, to the last bit."""
    return {name: weight.numpy().tobytes() for name, weight in network.state_dict().items()}
