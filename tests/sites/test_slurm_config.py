"""The output of scontrol becomes settings; an error in it is one line."""

import pytest

from pipeline.core.config import Partition
from pipeline.core.logs.slurm import SlurmNode
from pipeline.errors import UserError
from pipeline.sites.slurm_config import (
    SlurmConfig,
    SlurmPartition,
    backfill_of,
    parse_config,
    partitions_of,
    unsupported,
)

CONFIG = """Configuration data as of 2026-11-27T15:47:16
AccountingStorageType   = accounting_storage/slurmdbd
EnforcePartLimits       = NO
JobSubmitPlugins        = require_timelimit,lua
PreemptType             = preempt/none
PriorityDecayHalfLife   = 14-00:00:00
PriorityCalcPeriod      = 00:02:00
PriorityFavorSmall      = Yes
PriorityFlags           = ACCRUE_ALWAYS,NO_FAIR_TREE
PriorityMaxAge          = 7-12:00:00
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PriorityWeightAssoc     = 0
PriorityWeightFairShare = 10000
PriorityWeightTRES      = (null)
SchedulerParameters     = bf_interval=60,bf_continue,bf_max_job_test=500
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SLURM_CONF              = /etc/slurm/slurm.conf

Slurmctld(primary) at vm is UP
"""
PARTITIONS = """PartitionName=work
   AllowGroups=ALL Default=YES QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO
   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0
   Nodes=n[1-2]
   PriorityJobFactor=1 PriorityTier=1 OverSubscribe=NO
   State=UP TotalCPUs=8 TotalNodes=2

PartitionName=long
   Default=NO DefaultTime=00:30:00 MaxTime=2-00:00:00
   Nodes=n2 PriorityJobFactor=10 PriorityTier=2
   State=UP TotalCPUs=4 TotalNodes=1
"""
NODES = """NodeName=n1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=4 CPUEfctv=4 CPUTot=4 CPULoad=4.92
   Gres=gpu:2 Partitions=work,gpu
   OS=Linux 6.18.44 #1 SMP
   RealMemory=2000 AllocMem=400

NodeName=n2 Arch=x86_64
   CPUTot=8 Gres=(null) RealMemory=4000 Partitions=work
"""


def test_the_settings_that_order_jobs_are_read() -> None:
    found = parse_config(CONFIG)
    assert found.weights == {"Age": 1000, "Assoc": 0, "FairShare": 10_000, "JobSize": 0, "Partition": 0, "QOS": 0}
    assert found.max_age_s == 7.5 * 86_400
    assert (found.decay_half_life_s, found.calc_period_s) == (14 * 86_400, 120)
    assert found.favor_small
    assert found.job_submit_plugins == ("require_timelimit", "lua")
    assert found.scheduler_parameters == {"bf_interval": "60", "bf_continue": "", "bf_max_job_test": "500"}


def test_partitions_and_nodes_are_read() -> None:
    found = parse_config(partitions=PARTITIONS, nodes=NODES)
    assert found.partitions == (
        SlurmPartition("work", True, None, None, 1, 1, "n[1-2]", 8),
        SlurmPartition("long", False, 1800.0, 172_800.0, 2, 10, "n2", 4),
    )
    assert found.nodes == (SlurmNode("n1", 4, 2000, "gpu:2", ("gpu", "work")), SlurmNode("n2", 8, 4000, "", ("work",)))


def test_tiers_are_named_unless_they_are_replayed() -> None:
    found = parse_config(partitions=PARTITIONS)
    assert unsupported(found) == ["PriorityTier=[1, 2]: tiers, not replayed"]
    assert unsupported(found, ("Partition",)) == []
    assert partitions_of(found) == {"work": Partition(), "long": Partition(tier=2, factor=10)}


def test_absent_texts_are_defaults_of_slurm() -> None:
    assert parse_config() == SlurmConfig({})
    assert unsupported(parse_config()) == []


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"config": "jobs"}, "scontrol show config: expected a line 'PriorityType = ...', found 'jobs'"),
        (
            {"config": CONFIG.replace("7-12:00:00", "a week")},
            "scontrol show config: PriorityMaxAge: expected a time as 7-00:00:00 or UNLIMITED, found 'a week'",
        ),
        (
            {"config": CONFIG.replace("= 1000\n", "= -1\n")},
            "scontrol show config: PriorityWeightAge: expected a whole number, found '-1'",
        ),
        (
            {"partitions": PARTITIONS.replace("PriorityTier=2", "PriorityTier=two")},
            "scontrol show partition, long: PriorityTier: expected a whole number, found 'two'",
        ),
        ({"nodes": PARTITIONS}, "scontrol show node: expected NodeName=..., found 'PartitionName=work"),
    ],
)
def test_a_text_that_is_something_else_is_one_line(texts: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_config(**texts)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ("(null)", {}),
        ("bf_continue,sched_interval=60", {}),
        ("bf_interval=60", {"interval_s": 60.0}),
        ("bf_interval=999999", {"interval_s": 86_400.0}),
        ("bf_max_job_test=100,bf_window=2880", {"reservations": 100, "tested": 100, "window_h": 48.0}),
        ("bf_job_part_count_reserve=1", {"reservations": 1}),
        ("bf_max_job_test=50,bf_job_part_count_reserve=10", {"reservations": 10, "tested": 50}),
        ("bf_max_job_test=5000000,bf_window=99999999", {"reservations": 10**6, "tested": 10**6, "window_h": 1e5}),
    ],
)
def test_slurm_reserves_for_every_job_that_it_tests_unless_it_is_told_a_number(
    parameters: str, found: dict[str, float]
) -> None:
    text = CONFIG.replace("bf_interval=60,bf_continue,bf_max_job_test=500", parameters)
    assert backfill_of(parse_config(text)).model_dump(exclude_unset=True) == found


def test_each_setting_that_is_not_replayed_is_a_line() -> None:
    changed = CONFIG.replace("storage/slurmdbd", "storage/none").replace("preempt/none", "preempt/qos")
    changed = changed.replace("bf_interval", "bf_resolution")
    found = unsupported(parse_config(changed, PARTITIONS, NODES))
    assert [line.partition("=")[0] for line in found] == [
        "PriorityWeightFairShare",
        "PriorityFlags",
        "SchedulerParameters",
        "PreemptType",
        "PriorityTier",
        "Gres",
        "AccountingStorageType",
    ]
    assert found[0] == "PriorityWeightFairShare=10000: a term of the priority, not replayed"
    assert "SchedulerParameters=bf_resolution=60: not replayed" in found
    assert not [line for line in found if "\n" in line]
