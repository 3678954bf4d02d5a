"""The networks by their params.yaml word; each file holds one."""

from collections.abc import Callable
from typing import Any

import torch

from pipeline.config import Cnn as CnnConfig
from pipeline.config import Mlp as MlpConfig
from pipeline.config import NetworkConfig
from pipeline.config import Sets as SetsConfig
from pipeline.core import Cluster
from pipeline.policies.cnn import Cnn
from pipeline.policies.encodings import Layout
from pipeline.policies.mlp import Mlp
from pipeline.policies.network import Network, Scorer
from pipeline.policies.sets import Sets


def _mlp(config: MlpConfig, cluster: Cluster) -> Network:
    return Mlp(Layout.of(cluster, config.clock), config.hidden)


def _cnn(config: CnnConfig, cluster: Cluster) -> Network:
    return Cnn(Layout.of(cluster, config.clock), config.channels, config.hidden)


def _sets(config: SetsConfig, cluster: Cluster) -> Sets:
    return Sets(config.hidden, config.elapsed)


def build(config: NetworkConfig, cluster: Cluster, seed: int) -> Scorer[Any]:
    """Return a network with the initial weights that `seed` gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[config.name](config, cluster)


NETWORKS: dict[str, Callable[..., Scorer[Any]]] = {"mlp": _mlp, "cnn": _cnn, "sets": _sets}
