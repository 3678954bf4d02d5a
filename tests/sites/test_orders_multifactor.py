"""The priority in a site's Slurm, computed by hand, and combined with the site factors of an order."""

import numpy as np
import pytest
from queue_builders import Job, period, queue

from pipeline.core.config import Multifactor
from pipeline.sites.learned import score_of
from pipeline.sites.orders import ORDERS, REPLAYED, deployed, names_of, order_of, present, weights_of
from pipeline.sites.replay import LINEAR, Backfill, Order, replay
from pipeline.sites.slurm_config import parse_config, unsupported
from pipeline.sites.slurm_settings import SlurmOrder, named_order

HOUR, DAY = 3_600.0, 86_400.0
CONFIG = """PriorityType = priority/multifactor
PriorityWeightAge = 1000
PriorityWeightFairShare = 20000
PriorityWeightJobSize = 300
PriorityWeightQOS = 50
PriorityMaxAge = 10-00:00:00
PriorityDecayHalfLife = 00:00:00
PriorityFavorSmall = Yes
"""
NO_TREE = "PriorityFlags = ACCRUE_ALWAYS,NO_FAIR_TREE\n"
WEIGHTS = Multifactor(age=1_000, age_days=10.0, fair_share=20_000, half_life_days=7.0, job_size=300, qos=50)
QUEUE = queue([8, 8], Job(0, 60, 4, limit=HOUR), Job(9, 60, 8, limit=2 * HOUR, nodes=2))


def test_weights_come_from_the_configuration() -> None:
    found = parse_config(CONFIG)
    assert weights_of(found._replace(decay_half_life_s=7 * DAY), True) == WEIGHTS.model_copy(
        update={"favor_small": True}
    )
    assert weights_of(found._replace(decay_half_life_s=None), True).half_life_days == 3_650  # type: ignore[union-attr]
    assert [line.partition("=")[0] for line in unsupported(found, REPLAYED)] == [
        "PriorityWeightQOS",
        "PriorityWeightFairShare",
    ]
    often = parse_config(f"{CONFIG}PriorityCalcPeriod = 00:02:00\n")
    assert weights_of(often, True).period_s == 120  # type: ignore[union-attr]
    tree, classic = (parse_config(f"{CONFIG}FairShareDampeningFactor = 3\n{more}") for more in ("", NO_TREE))
    assert (weights_of(tree, True).fair_tree, weights_of(classic, True).fair_tree) == (True, False)  # type: ignore[union-attr]
    assert unsupported(tree, REPLAYED) == unsupported(found, REPLAYED)  # Fair Tree has no dampening
    assert unsupported(classic, REPLAYED)[-1] == "FairShareDampeningFactor=3: replayed as 1"


@pytest.mark.parametrize(
    "changed", [{"priority_type": "priority/basic"}, {"weights": {"FairShare": 0, "JobSize": 0, "QOS": 0}}]
)
def test_a_slurm_that_orders_by_submission_has_no_weights(changed: dict[str, object]) -> None:
    assert weights_of(parse_config(CONFIG)._replace(**changed), True) is None  # type: ignore[arg-type]


def test_the_present_order_has_age_size_and_fair_share() -> None:
    """The first job takes 4 of 16 processors and 1 of 2 nodes, the second job all of them."""
    found = present(QUEUE, WEIGHTS)
    assert (found.rule, found.slope, found.fair_share) == (LINEAR, 1_000 / (10 * DAY), 20_000)
    assert (found.half_life, found.period, found.fair_tree) == (7 * DAY, 300, True)
    other = present(QUEUE, WEIGHTS.model_copy(update={"fair_tree": False, "users": 30}))
    assert (other.fair_tree, other.users) == (False, 30)
    assert found.static.tolist() == pytest.approx([300 * (0.25 + 0.5) / 2, 300])
    small = present(QUEUE, WEIGHTS.model_copy(update={"favor_small": True}))
    assert small.static.tolist() == pytest.approx([300 * (1 - 0.375), 0], abs=1e-9)
    pool = queue([16], Job(0, 60, 4, limit=HOUR))
    assert present(pool, WEIGHTS).static.tolist() == pytest.approx([300 * 0.25])  # a pool has no nodes


def test_an_order_keeps_the_other_weights_and_a_second_keeps_its_points() -> None:
    """1,000 points in ten days are 33.3 in 8 hours, which is too coarse: one unit of the score becomes 100 points."""
    strong = WEIGHTS.model_copy(update={"age": 30_000})
    for weights, scale in ((WEIGHTS, 100.0), (strong, 1_000.0)):
        pure = Order(LINEAR, -np.log(QUEUE.limit), slope=1 / (8 * HOUR))
        found = deployed(pure, named_order("limit", 8 * HOUR), QUEUE, weights)
        assert found.static.tolist() == pytest.approx((scale * pure.static + present(QUEUE, weights).static).tolist())
        assert found.slope == pytest.approx(scale / (8 * HOUR))
        assert (found.fair_share, found.half_life) == (20_000, 7 * DAY)
        named = order_of("limit_8h", QUEUE, weights)
        assert (named.static == found.static).all()
        learned = score_of(SlurmOrder(8 * HOUR), period(QUEUE)._replace(slurm=weights))
        assert learned.static.tolist() == pytest.approx(found.static.tolist())
    assert order_of("sjf", QUEUE, WEIGHTS).fair_share == 0  # not applied through site factors


def test_the_factor_of_a_partition_counts_next_to_the_others() -> None:
    q = queue([8, 8], Job(0, 60, 4), Job(9, 60, 4, partition=1), members=[[0, 1], [0, 1]], factor=[0.2, 1.0])
    plain, found = present(q, WEIGHTS), present(q, WEIGHTS.model_copy(update={"partition": 500}))
    assert (found.static - plain.static).tolist() == pytest.approx([100, 500])
    parts = "PartitionName=a PriorityJobFactor=2\nPartitionName=b PriorityJobFactor=10\n"
    config = CONFIG + "PriorityWeightPartition = 500\n"
    assert weights_of(parse_config(config, partitions=parts), True).partition == 500  # type: ignore[union-attr]
    assert weights_of(parse_config(config), True).partition == 0  # type: ignore[union-attr]
    only = "PriorityType = priority/multifactor\nPriorityWeightPartition = 500\n"
    assert weights_of(parse_config(only, partitions=parts), True) is not None
    assert weights_of(parse_config(only, partitions=parts.replace("10", "2")), True) is None  # the same for all jobs


def test_the_priority_of_a_qos_counts_next_to_the_others() -> None:
    plain, found = present(QUEUE, WEIGHTS), present(QUEUE._replace(qos=np.array([0.2, 1.0])), WEIGHTS)
    assert (found.static - plain.static).tolist() == pytest.approx([10, 50])


def test_who_used_the_machine_waits_for_who_did_not() -> None:
    """Two jobs wait while a job of user 0 runs: that of user 1 comes first, although it was submitted later."""
    q = queue([1], Job(0, HOUR, user=0), Job(10, 60, user=0), Job(20, 60, user=1))
    starts = {}
    for name in ("fcfs", "multifactor"):
        found = replay(q, order_of(name, q, WEIGHTS), Backfill(), q.submit, np.arange(3))
        starts[name] = found.argsort().tolist()
    assert starts == {"fcfs": [0, 1, 2], "multifactor": [0, 2, 1]}


def test_the_order_is_known_only_where_there_are_weights() -> None:
    assert names_of(None) == ORDERS
    assert names_of(WEIGHTS) == (*ORDERS, "multifactor")
    with pytest.raises(KeyError, match="multifactor"):
        order_of("multifactor", QUEUE)
