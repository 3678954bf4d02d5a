"""Quotas of a site: what the running jobs of a QOS, an account or a user may hold together.

As in Slurm, a quota of the QOS of a job's partition replaces those of the job's own QOS, which replace those without
a QOS. This applies separately to processors and jobs, and to `each: all` (Grp...) and the others (Max...). A quota of
some users replaces that of all users of an account. Replaced quotas still count the job. Jobs of unknown users count
as those of one user, and likewise for accounts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.config.evaluation import Quota
from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.errors import UserError

RESOURCES = ("cpus", "jobs")


class Counted(NamedTuple):
    """Fields of a `Queue` about quotas: G per job, Q in total. With `each`, a row is one quota per user or account."""

    counted: IntArray  # [J, G]
    bound: BoolArray  # [J, G]
    most: FloatArray  # [Q]
    of_jobs: BoolArray  # [Q]


def quotas_of(
    rows: Sequence[Quota], user: IntArray, group: IntArray, groups: Sequence[tuple[str, str]],
    of_partition: Sequence[str] = ("",),
) -> Counted:  # fmt: skip
    """Return the quotas of jobs.

    Args:
        rows: rows of params.yaml.
        user: [J] user of each job, as a number in the log.
        group: [J] index in `groups`.
        groups: pairs of account and QOS.
        of_partition: [J] or [1] QOS of the job's partition; empty = none.

    Raises:
        UserError: a quota needs a QOS or accounts that the log does not record.
    """
    used = []
    for row in rows:
        by_partition = (np.asarray(of_partition) == row.qos) & bool(row.qos)
        named = [*groups, *([("", row.qos)] if by_partition.any() else [])]  # the log need not name its QOS
        jobs = by_partition | members(row, named)[group]
        jobs &= np.isin(user, row.users) if row.users else True
        if jobs.any():
            used.append((row, jobs, np.where(by_partition, 3, 2 if row.qos else 1 if row.users else 0)))
    accounts, people = _numbers([account for account, _ in groups])[group], _numbers(user)
    pairs = people * (accounts.max(initial=0) + 1) + accounts
    keys = {"all": np.zeros_like(people), "user": people, "account": accounts, "association": pairs}
    parts, most, of_jobs = [np.empty((3, 0), dtype=np.int64)], list[int](), list[bool]()
    for row, jobs, rank in used:
        for resource in (name for name in RESOURCES if getattr(row, name) is not None):
            replaced = np.zeros(len(user), dtype=bool)
            for other, theirs, above in used:
                if _comparable(other, row) and getattr(other, resource) is not None:
                    replaced |= theirs & (above > rank)
            number, which = _numbers(keys[row.each][jobs]), np.flatnonzero(jobs)
            parts.append(np.stack([which, len(most) + number, ~replaced[which]]))
            added = int(number.max()) + 1
            most += [getattr(row, resource)] * added
            of_jobs += [resource == "jobs"] * added
    return Counted(*_packed(np.concatenate(parts, axis=1), len(user)), np.array(most, float), np.array(of_jobs, bool))


def _comparable(other: Quota, row: Quota) -> bool:
    return (other.each == "all") == (row.each == "all") and bool(other.qos or other.each == row.each == "association")


def _numbers(keys: Sequence[str] | IntArray) -> IntArray:
    return np.asarray(np.unique(np.asarray(keys), return_inverse=True)[1], dtype=np.int64)


def _packed(parts: IntArray, jobs: int) -> tuple[IntArray, BoolArray]:
    """Return the quotas of each job and whether they bind it, from columns of job, quota and whether it binds."""
    job, quota, binds = parts[:, np.argsort(parts[0], kind="stable")]
    place = np.arange(len(job)) - np.searchsorted(job, job)
    counted = np.full((jobs, int(place.max(initial=-1)) + 1), -1, dtype=np.int64)
    bound = np.zeros(counted.shape, dtype=bool)
    counted[job, place], bound[job, place] = quota, binds
    return counted, bound


def members(row: Quota, groups: Sequence[tuple[str, str]]) -> BoolArray:
    """Return the groups to which a quota applies, as a mask; UserError if the log lacks what it refers to."""
    of_accounts = row.accounts or row.each in ("account", "association")
    for place, wanted in enumerate((of_accounts, row.qos)):
        if wanted and not any(group[place] for group in groups):
            raise UserError(
                f"sites: quotas: the log does not name the {('accounts', 'QOS')[place]} of its jobs: import it again "
                "from a dump that does, by 'import slurm'"
            )
    return np.array([
        (not row.qos or qos == row.qos) and (not row.accounts or account in row.accounts) for account, qos in groups
    ])  # fmt: skip
