"""Site factors and the order of waiting jobs, computed in Python as `job_submit.lua` and Slurm compute them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.sites.slurm_config import SlurmPartition
from pipeline.sites.slurm_settings import DAY_S, LONGEST_S, SHORTEST_S, SlurmSettings


class Submission(NamedTuple):
    """Job as submitted to Slurm."""

    number: int
    limit_s: float | None  # None: the partition's
    cpus: int
    partitions: tuple[str, ...] = ()  # none: the default partition
    user: str = ""
    waited_s: float = 0.0


def site_factor(settings: SlurmSettings, job: Submission) -> int:
    """Compute the site factor of a job exactly as `job_submit.lua` does."""
    order, parts = settings.order, {part.name: part for part in settings.config.partitions}
    names = job.partitions or tuple(part.name for part in parts.values() if part.default) or ("",)
    past = _within(order.users.get(job.user, order.past_s))
    highest = max(
        order.limit * math.log(_limit_s(job, parts.get(name)))
        + order.cpus * math.log(max(job.cpus, 1))
        + order.past * math.log(past)
        + order.partitions.get(name, 0)
        for name in names
    )
    return max(1, math.floor(settings.scale * (settings.top - highest) + 0.5))


def _limit_s(job: Submission, part: SlurmPartition | None) -> float:
    limits = (job.limit_s, part.default_s if part else None, part.max_s if part else None)
    return _within(next((limit for limit in limits if limit is not None), LONGEST_S))


def _within(seconds: float) -> float:
    return min(max(seconds, SHORTEST_S), LONGEST_S)


def expected_order(settings: SlurmSettings, jobs: Sequence[Submission]) -> list[int]:
    """Return the numbers of waiting jobs in the order of their site and age factors, ties by number."""
    longest = settings.max_age_days * DAY_S

    def priority(job: Submission) -> int:
        return int(site_factor(settings, job) + min(job.waited_s / longest, 1.0) * settings.weight_age)

    return [job.number for job in sorted(jobs, key=lambda job: (-priority(job), job.number))]
