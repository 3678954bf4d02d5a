"""Orders of a queue: heuristics, and the two families that Slurm's own settings can express.

`limit_8h` orders by the logarithm of the requested limit and lets 8 hours of waiting weigh as much as a factor of e in
the limit. `area_8h` does so for limit times processors, and `learned_8h` for a learned score. Ages are linear, so that
no job waits for ever. Sources:

    fcfs                    order of submission
    saf, f1                 Carastan-Santos and de Camargo, SC 2017
    wfp3, unicep            Tang et al., Cluster 2009
    *_first_after           the order, but a job that has waited for a day comes first

`multifactor` is the priority that the site's Slurm computes (src/plugins/priority/multifactor). All its terms but age
remain when site factors set the order:

    age         weight * wait / PriorityMaxAge; Slurm stops at the maximum, the replay does not
    job size    weight * mean of the job's shares of processors and of nodes, or 1 minus it with PriorityFavorSmall
    partition   weight * PriorityJobFactor / the highest one of all partitions
    QOS         weight * priority of the job's QOS / the highest one
    fair-share  weight * the part of users who have not used less, with decayed usage (Fair Tree, fair_tree.c); with
                NO_FAIR_TREE, weight * 2^(-usage / share), with the user's part of all decayed usage. All users have
                equal shares in one account: a log does not record the tree of accounts

A log does not record the terms of associations and TRES, so `unsupported` names these weights.
"""

from collections.abc import Callable, Mapping

import numpy as np

from pipeline.core.config import Multifactor
from pipeline.core.logs.trace import DAY_S
from pipeline.core.types import THOUSANDTHS, FloatArray
from pipeline.sites.replay import AREA_AGED, LINEAR, UNICEP, WFP3, Order, Queue
from pipeline.sites.slurm_config import MULTIFACTOR as PLUGIN
from pipeline.sites.slurm_config import SlurmConfig
from pipeline.sites.slurm_settings import SlurmOrder, named_order, plan_settings

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


HOUR_S = 3_600.0
HOURS = (1, 2, 4, 8, 16, 32, 64)  # tau of the families
FEATURES: Mapping[str, Callable[[Queue], FloatArray]] = {
    "limit": lambda queue: np.log(queue.limit),
    "area": lambda queue: np.log(queue.limit * queue.cpus),
}
FAMILIES = {f"{feature}_{hours}h": (feature, hours * HOUR_S) for feature in FEATURES for hours in HOURS}
LEARNED = {f"learned_{hours}h": ("learned", hours * HOUR_S) for hours in HOURS}
FOR_SLURM = FAMILIES | LEARNED
HEURISTICS = ("fcfs", "sjf", "saf", "saf_aged", "f1", "wfp3", "unicep")
BOUNDED = {f"{name}_first_after_24h": (name, 24 * HOUR_S) for name in ("sjf", "saf")}
ORDERS = (*HEURISTICS, *BOUNDED, *FAMILIES)


def names_of(slurm: Multifactor | None) -> tuple[str, ...]:
    """Return the orders that can be replayed for a site with these weights in Slurm."""
    return (*ORDERS, MULTIFACTOR) if slurm else ORDERS


def order_of(name: str, queue: Queue, slurm: Multifactor | None = None) -> Order:
    """Return an order for the jobs of a queue.

    Args:
        name: name of the order.
        queue: the jobs.
        slurm: weights of the site's Slurm, which still apply in addition to site factors.

    Raises:
        KeyError: no order has that name.
    """
    if name == MULTIFACTOR and slurm:
        return present(queue, slurm)
    if name in FAMILIES:
        feature, tau = FAMILIES[name]
        order = Order(LINEAR, -FEATURES[feature](queue), slope=1 / tau)
        return deployed(order, named_order(feature, tau), queue, slurm) if slurm else order
    if name in BOUNDED:
        base, longest = BOUNDED[name]
        return order_of(base, queue)._replace(longest=longest)
    zero = np.zeros(len(queue.submit))
    if name == "f1":
        return Order(LINEAR, -(np.log10(queue.limit) * queue.cpus + 870 * np.log10(np.maximum(queue.submit, 1))))
    rules = {
        "fcfs": Order(LINEAR, zero, slope=1.0),
        "sjf": Order(LINEAR, -queue.limit),
        "saf": Order(LINEAR, -queue.limit * queue.cpus),
        "saf_aged": Order(AREA_AGED, zero, age=4 * HOUR_S),
        "wfp3": Order(WFP3, zero),
        "unicep": Order(UNICEP, zero),
    }
    return rules[name]
