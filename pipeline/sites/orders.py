"""Orders of a queue: heuristics, and the two families that Slurm's own settings can express.

`limit_8h` orders by the logarithm of the requested limit and lets 8 hours of waiting weigh as much as a factor of e in
the limit. `area_8h` does so for limit times processors, and `learned_8h` for a learned score. Ages are linear, so that
no job waits for ever. Sources:

    fcfs                    order of submission
    saf, f1                 Carastan-Santos and de Camargo, SC 2017
    wfp3, unicep            Tang et al., Cluster 2009
    *_first_after           the order, but a job that has waited for a day comes first
"""

from collections.abc import Callable, Mapping

import numpy as np

from pipeline.core.config import Multifactor
from pipeline.core.types import FloatArray
from pipeline.sites.multifactor import MULTIFACTOR, deployed, present
from pipeline.sites.replay import AREA_AGED, LINEAR, UNICEP, WFP3, Order, Queue
from pipeline.sites.slurm_settings import named_order

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
    """Return the orders that can be replayed for a site whose Slurm has these weights."""
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
