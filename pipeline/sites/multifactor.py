"""The priority that a site's Slurm computes itself, and the part that remains when site factors set the order.

Terms of priority/multifactor, as in Slurm's source (src/plugins/priority/multifactor):

    age         weight * wait / PriorityMaxAge; Slurm stops at the maximum, the replay does not
    job size    weight * mean of the job's shares of processors and of nodes, or 1 minus it with PriorityFavorSmall
    partition   weight * PriorityJobFactor / the highest one of all partitions
    QOS         weight * priority of the job's QOS / the highest one
    fair-share  weight * the part of users who have not used less, with decayed usage (Fair Tree, fair_tree.c); with
                NO_FAIR_TREE, weight * 2^(-usage / share), with the user's part of all decayed usage. All users have
                equal shares in one account: a log does not record the tree of accounts

A log does not record the terms of associations and TRES, so `unsupported` names these weights.
"""

import numpy as np

from pipeline.core.config import Multifactor
from pipeline.core.logs.trace import DAY_S
from pipeline.core.types import THOUSANDTHS, FloatArray
from pipeline.sites.replay import LINEAR, Order, Queue
from pipeline.sites.slurm_config import MULTIFACTOR as PLUGIN
from pipeline.sites.slurm_config import SlurmConfig
from pipeline.sites.slurm_settings import SlurmOrder, plan_settings

MULTIFACTOR = "multifactor"  # as an order
REPLAYED = ("FairShare", "JobSize")  # weights besides age; `replayed` adds those of partitions and QOS
NO_DECAY_DAYS = 3_650.0


def weights_of(config: SlurmConfig, qos_known: bool, users: int = 0) -> Multifactor | None:
    """Return the weights of a site's Slurm that are replayed; None if it starts jobs in order of submission.

    The weight of partitions is replayed if their factors differ, that of QOS if QOS priorities are known.
    """
    size, fair = config.weights["JobSize"], config.weights["FairShare"]
    qos = config.weights["QOS"] if qos_known else 0
    partition = config.weights["Partition"] if len({part.job_factor for part in config.partitions}) > 1 else 0
    if config.priority_type != PLUGIN or not (size or fair or partition or qos):
        return None
    return Multifactor(
        age=config.weights["Age"],
        age_days=(config.max_age_s or NO_DECAY_DAYS * DAY_S) / DAY_S,
        fair_share=fair,
        period_s=config.calc_period_s or 0.0,
        fair_tree=config.fair_tree,
        users=users,
        half_life_days=(config.decay_half_life_s or NO_DECAY_DAYS * DAY_S) / DAY_S,
        job_size=size,
        favor_small=config.favor_small,
        partition=partition,
        qos=qos,
    )


def replayed(config: SlurmConfig, qos_known: bool) -> tuple[str, ...]:
    """Return the weights besides age that are replayed for a site with this configuration."""
    return (*REPLAYED, *(["Partition"] if config.partitions else []), *(["QOS"] if qos_known else []))


def scale_of(score: SlurmOrder, weights: Multifactor) -> float:
    """Return the points per unit of a score that the replay uses, and that the settings must use too."""
    found = {"Age": weights.age, "FairShare": weights.fair_share, "JobSize": weights.job_size}
    found |= {"Partition": weights.partition, "QOS": weights.qos}
    config = SlurmConfig({}, weights={**SlurmConfig({}).weights, **found}, max_age_s=weights.age_days * DAY_S)
    return plan_settings(score, config, 0.0).scale


def present(queue: Queue, weights: Multifactor) -> Order:
    """Return today's order."""
    return _kept(Order(LINEAR, np.zeros(len(queue.submit)), weights.age / (weights.age_days * DAY_S)), queue, weights)


def deployed(order: Order, score: SlurmOrder, queue: Queue, weights: Multifactor) -> Order:
    """Return a score's order as Slurm would run it with the settings of `advise --slurm`, plus the kept weights."""
    scale = scale_of(score, weights)
    return _kept(order._replace(static=scale * order.static, slope=scale * order.slope), queue, weights)


def _kept(order: Order, queue: Queue, weights: Multifactor) -> Order:
    return order._replace(
        static=order.static
        + weights.job_size * _size(queue, weights.favor_small)
        + weights.partition * queue.factor[queue.partition]
        + weights.qos * queue.qos,
        fair_share=float(weights.fair_share),
        half_life=weights.half_life_days * DAY_S,
        period=weights.period_s,
        fair_tree=weights.fair_tree,
        users=weights.users,
    )


def _size(queue: Queue, favor_small: bool) -> FloatArray:
    processors = queue.cpus / (queue.capacity[:, 0].sum() / THOUSANDTHS)
    nodes = queue.nodes / len(queue.capacity) if len(queue.capacity) > 1 else processors  # a pool has no nodes
    share = np.minimum((processors + nodes) / 2, 1.0)
    return np.asarray(1.0 - share if favor_small else share)
