"""The networks by their params.yaml word; each file holds one."""

from collections.abc import Callable

import torch

from pipeline.config import Cnn as CnnConfig
from pipeline.config import Mlp as MlpConfig
from pipeline.config import NetworkConfig
from pipeline.core import Cluster
from pipeline.policies.cnn import Cnn
from pipeline.policies.encodings import Layout
from pipeline.policies.mlp import Mlp
from pipeline.policies.network import Network


def _mlp(config: MlpConfig, cluster: Cluster) -> Network:
    return Mlp(Layout.of(cluster, config.clock), config.hidden)


def _cnn(config: CnnConfig, cluster: Cluster) -> Network:
    return Cnn(Layout.of(cluster, config.clock), config.channels, config.hidden)


def build(config: NetworkConfig, cluster: Cluster, seed: int) -> Network:
    """Return a network with the initial weights that `seed` gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[config.name](config, cluster)


NETWORKS: dict[str, Callable[..., Network]] = {"mlp": _mlp, "cnn": _cnn}
