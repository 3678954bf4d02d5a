"""The networks by their name in params.yaml; each file holds one."""

from collections.abc import Callable

import torch

from pipeline.core.config import PoolNetworkConfig
from pipeline.problems.pool.agents.networks.cnn import Cnn
from pipeline.problems.pool.agents.networks.encodings import Layout
from pipeline.problems.pool.agents.networks.mlp import Mlp
from pipeline.problems.pool.agents.networks.network import Network
from pipeline.problems.pool.agents.networks.scores import Scores
from pipeline.problems.pool.env.nouns import Cluster

PoolNetwork = Network | Scores


def build(config: PoolNetworkConfig, cluster: Cluster, seed: int) -> PoolNetwork:
    """Return a network with initial weights drawn by a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[config.name](config, cluster)


NETWORKS: dict[str, Callable[..., PoolNetwork]] = {
    "mlp": lambda config, cluster: Mlp(Layout.of(cluster, config.clock), config.hidden),
    "cnn": lambda config, cluster: Cnn(Layout.of(cluster, config.clock), config.channels, config.hidden),
    "scores": lambda config, cluster: Scores(config.hidden),
}
