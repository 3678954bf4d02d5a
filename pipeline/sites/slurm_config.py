"""Configuration of a site's Slurm, parsed from the text of `scontrol show config`, `partition` and `node`."""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from pipeline.core.config import Backfilling, Partition
from pipeline.core.logs.slurm import UNSET, SlurmNode, nodes_of, records, whole
from pipeline.errors import UserError

CONFIG, PARTITION = "scontrol show config", "scontrol show partition"
ENDLESS = ("UNLIMITED", "INFINITE")
LENGTH = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", re.ASCII)
WEIGHTS = ("Age", "Assoc", "FairShare", "JobSize", "Partition", "QOS")
MULTIFACTOR, BACKFILLS = "priority/multifactor", "sched/backfill"
# Settings that change the order or the start of jobs. The replay models none of them.
NOT_REPLAYED = {
    **{f"PriorityWeight{name}": "a term of the priority" for name in (*WEIGHTS[1:], "TRES")},
    "PrioritySiteFactorPlugin": "a plugin that sets site factors itself",
    "PriorityFlags": "rules for the computation of priorities",
    "EnforcePartLimits": "rejection of jobs above a partition's limits",
}
# The SchedulerParameters that the replay follows.
BACKFILL = ("bf_job_part_count_reserve", "bf_max_job_test", "bf_window", "bf_interval", "bf_continue")
MOST_TESTED, MOST_MINUTES, LONGEST_S = 1_000_000, 6_000_000, 86_400


class SlurmPartition(NamedTuple):
    """Partition of a Slurm cluster."""

    name: str
    default: bool  # used by jobs that name no partition
    default_s: float | None  # DefaultTime; None: the same as MaxTime
    max_s: float | None  # MaxTime; None: no limit
    tier: int
    job_factor: int
    nodes: str
    cpus: int
    qos: str = ""


class SlurmConfig(NamedTuple):
    """Settings of a Slurm cluster; any that were not given have Slurm's defaults."""

    settings: Mapping[str, str]  # as printed
    priority_type: str = MULTIFACTOR
    weights: Mapping[str, int] = dict.fromkeys(WEIGHTS, 0)  # PriorityWeight*, without TRES
    max_age_s: float | None = 7 * 86_400.0  # None: no limit
    favor_small: bool = False
    fair_tree: bool = True
    decay_half_life_s: float | None = 7 * 86_400.0
    calc_period_s: float | None = 300.0
    job_submit_plugins: tuple[str, ...] = ()
    scheduler_parameters: Mapping[str, str] = {}
    partitions: tuple[SlurmPartition, ...] = ()
    nodes: tuple[SlurmNode, ...] = ()


def parse_config(config: str = "", partitions: str = "", nodes: str = "") -> SlurmConfig:
    """Parse the output of `scontrol show config`, `show partition` and `show node`; each may be empty.

    Raises:
        UserError: a text is not what its command prints.
    """
    found = _parse_settings(config) if config.strip() else SlurmConfig({})
    return found._replace(
        partitions=tuple(_partition(row) for row in records(partitions, "PartitionName", PARTITION)),
        nodes=nodes_of(nodes),
    )


def _parse_settings(text: str) -> SlurmConfig:
    rows = (line.partition("=") for line in text.splitlines())
    found = {name.strip(): value.strip() for name, equals, value in rows if equals}
    if "PriorityType" not in found:
        raise UserError(f"{CONFIG}: expected a line 'PriorityType = ...', found {text.strip()[:40]!r}")
    parameters = (word.partition("=") for word in _words(found.get("SchedulerParameters", "")))
    return SlurmConfig(
        settings=found,
        priority_type=found["PriorityType"],
        weights={name: whole(found, f"PriorityWeight{name}", CONFIG, "0") for name in WEIGHTS},
        max_age_s=_length(found, "PriorityMaxAge", CONFIG, "7-00:00:00"),
        favor_small=found.get("PriorityFavorSmall", "No").lower() == "yes",
        fair_tree="NO_FAIR_TREE" not in _words(found.get("PriorityFlags", "")),
        decay_half_life_s=_length(found, "PriorityDecayHalfLife", CONFIG, "7-00:00:00"),
        calc_period_s=_length(found, "PriorityCalcPeriod", CONFIG, "00:05:00"),
        job_submit_plugins=_words(found.get("JobSubmitPlugins", "")),
        scheduler_parameters={name: value for name, _, value in parameters},
    )


def backfill_of(config: SlurmConfig) -> Backfilling:
    """Return the backfill settings of a configuration; missing values are Slurm's defaults.

    Raises:
        UserError: a value is not a whole number.
    """
    reserved, tested, minutes, seconds = (
        whole(config.scheduler_parameters, name, CONFIG, "0") for name in BACKFILL[:4]
    )
    found = {
        "reservations": min(reserved or tested, MOST_TESTED),  # without a number, all jobs that are tested
        "tested": min(tested, MOST_TESTED),
        "window_h": min(minutes, MOST_MINUTES) / 60,
        "interval_s": min(seconds, LONGEST_S),
    }
    return Backfilling.model_validate({name: value for name, value in found.items() if value})


def partitions_of(config: SlurmConfig) -> dict[str, Partition]:
    """Return the tier, the factor and the QOS of each partition, by name."""
    return {part.name: Partition(tier=part.tier, factor=part.job_factor, qos=part.qos) for part in config.partitions}


def _partition(row: Mapping[str, str]) -> SlurmPartition:
    where = f"{PARTITION}, {row['PartitionName']}"
    return SlurmPartition(
        row["PartitionName"],
        row.get("Default", "NO").upper() == "YES",
        _length(row, "DefaultTime", where, "NONE"),
        _length(row, "MaxTime", where, "UNLIMITED"),
        whole(row, "PriorityTier", where, "1"),
        whole(row, "PriorityJobFactor", where, "1"),
        row.get("Nodes", ""),
        whole(row, "TotalCPUs", where, "0"),
        row.get("QoS", "").replace("N/A", ""),
    )


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a comma-separated list; empty if Slurm prints the value as unset."""
    return () if text in UNSET else tuple(word.strip() for word in text.split(",") if word.strip())


def _length(row: Mapping[str, str], name: str, where: str, otherwise: str) -> float | None:
    """Return the seconds of '7-00:00:00' or '30:00'; None if there is no limit or the value is unset."""
    text = row.get(name, otherwise)
    if text in ENDLESS or text in UNSET:
        return None
    if not (match := LENGTH.fullmatch(text)):
        raise UserError(f"{where}: {name}: expected a time as 7-00:00:00 or UNLIMITED, found {text[:40]!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(86_400 * days + 3600 * hours + 60 * minutes + seconds)


def unsupported(config: SlurmConfig, replayed: Collection[str] = (), quotas: Collection[str] = ()) -> list[str]:
    """Return a line for each setting that the replay does not model.

    `replayed` names the weights that it does model, `quotas` the QOS whose quotas it has.

    >>> unsupported(SlurmConfig({"PriorityWeightQOS": "500", "PriorityFlags": ""}))
    ['PriorityWeightQOS=500: a term of the priority, not replayed']
    """
    found = [
        f"{name}={value}: {what}, not replayed"
        for name, what in NOT_REPLAYED.items()
        if (value := config.settings.get(name, "")) not in (*UNSET, "0")
        and name.removeprefix("PriorityWeight") not in replayed
    ]
    accounting, preempt = (config.settings.get(name, "") for name in ("AccountingStorageType", "PreemptType"))
    damping, fair = config.settings.get("FairShareDampeningFactor", ""), config.weights["FairShare"]
    scheduler, select = config.settings.get("SchedulerType", BACKFILLS), config.settings.get("SelectType")
    qos = sorted({part.qos for part in config.partitions if part.qos and part.qos not in quotas})
    tiers, gres = {part.tier for part in config.partitions}, {node.gres for node in config.nodes if node.gres}
    more = [f"{name}={value}" for name, value in config.scheduler_parameters.items() if name not in BACKFILL]
    others = {
        f"SchedulerParameters={','.join(more)[:80]}: not replayed": bool(more),
        f"PriorityWeightFairShare={fair}: replayed with equal shares of all users, without accounts": (
            "FairShare" in replayed and fair > 0
        ),
        f"FairShareDampeningFactor={damping}: replayed as 1": damping not in (*UNSET, "1") and not config.fair_tree,
        f"PriorityType={config.priority_type}: expected {MULTIFACTOR}": config.priority_type != MULTIFACTOR,
        f"SchedulerType={scheduler}: the replay backfills": scheduler != BACKFILLS,
        f"SelectType={select}: allocation of whole nodes, not replayed": select == "select/linear",
        f"PreemptType={preempt}: preemption, not replayed": preempt not in (*UNSET, "preempt/none"),
        f"PriorityTier={sorted(tiers)}: tiers, not replayed": len(tiers) > 1 and "Partition" not in replayed,
        f"QoS={','.join(qos)[:80]}: quotas of partitions, not replayed: 'site --quotas' reads them": bool(qos),
        f"Gres={','.join(sorted(gres))[:80]}: generic resources of nodes, not replayed": bool(gres),
        f"AccountingStorageType={accounting}: without SlurmDBD, Slurm ignores PriorityWeightAge, so jobs can starve": (
            accounting not in ("", "accounting_storage/slurmdbd")
        ),
    }
    return found + [line for line, present in others.items() if present]
