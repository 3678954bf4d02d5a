"""Quotas of a site: what the running jobs of a QOS, an account or a user may hold together.

As in Slurm, a quota of the QOS of a job's partition replaces those of the job's own QOS with the same `each`, or the
other way round with `over_partition`, and quotas of a QOS replace those without one, separately for `each: all`
(Grp...) and the others (Max...). All this applies separately to processors and jobs. A quota of some users replaces
that of all users of an account. Replaced quotas still count the job. Jobs of unknown users count as those of one user,
and likewise for accounts.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.core.config.evaluation import Partition, Quota
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
    mine = [(row, *_members(row, user, group, groups, np.asarray(of_partition))) for row in rows]
    used = [(row, jobs, rank) for row, jobs, rank in mine if jobs.any()]
    highest = _highest(used, len(user))
    accounts, people = _numbers([account for account, _ in groups])[group], _numbers(user)
    pairs = people * (accounts.max(initial=0) + 1) + accounts
    keys = {"all": np.zeros_like(people), "user": people, "account": accounts, "association": pairs}
    parts, most, of_jobs = [np.empty((3, 0), dtype=np.int64)], list[int](), list[bool]()
    for row, jobs, rank in used:
        for resource in (name for name in RESOURCES if getattr(row, name) is not None):
            replaced = highest.get((resource, *_rivals(row)), rank) > rank
            number, which = _numbers(keys[row.each][jobs]), np.flatnonzero(jobs)
            parts.append(np.stack([which, len(most) + number, ~replaced[which]]))
            added = int(number.max()) + 1
            most += [getattr(row, resource)] * added
            of_jobs += [resource == "jobs"] * added
    return Counted(*_packed(np.concatenate(parts, axis=1), len(user)), np.array(most, float), np.array(of_jobs, bool))


def _highest(used: Sequence[tuple[Quota, BoolArray, IntArray]], jobs: int) -> dict[tuple[str, ...], IntArray]:
    """Return the highest rank [J] of the quotas of each resource that can replace those of a kind."""
    found: dict[tuple[str, ...], IntArray] = {}
    for row, mine, rank in used:
        of_users = row.each == "association" and bool(row.users)
        kinds = [("qos", row.each), ("", _level(row))] if row.qos else [("", "users")] if of_users else []
        for resource in (name for name in RESOURCES if getattr(row, name) is not None):
            for kind in kinds:
                place = (resource, *kind)
                found[place] = np.maximum(found.get(place, np.zeros(jobs, np.int64)), np.where(mine, rank, 0))
    for resource in RESOURCES:  # associations give way to those of their users, too
        both = [found[place] for place in ((resource, "", "users"), (resource, "", "most")) if place in found]
        if both:
            found[resource, "", "association"] = np.maximum.reduce(both)
    return found


def _rivals(row: Quota) -> tuple[str, str]:
    """Return the kind of the quotas that can replace one."""
    if row.qos:
        return "qos", row.each
    return "", "association" if row.each == "association" else _level(row)


def _level(row: Quota) -> str:
    return "all" if row.each == "all" else "most"


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


def _members(
    row: Quota, user: IntArray, group: IntArray, groups: Sequence[tuple[str, str]], of_partition: NDArray[np.str_]
) -> tuple[BoolArray, IntArray]:
    """Return the jobs to which a quota applies [J], and its rank for each job: a higher one replaces lower ones."""
    by_partition = np.broadcast_to((of_partition == row.qos) & bool(row.qos), user.shape)
    of_accounts = row.accounts or row.each in ("account", "association")
    for place, wanted in enumerate((of_accounts, row.qos and not by_partition.any())):
        if wanted and not any(one[place] for one in groups):
            raise UserError(
                f"sites: quotas: the log does not name the {('accounts', 'QOS')[place]} of its jobs: import it again "
                "from a dump that does, by 'import slurm'"
            )
    own = np.array([not row.qos or qos == row.qos for _, qos in groups])[group]
    there = np.array([not row.accounts or account in row.accounts for account, _ in groups])[group]
    jobs = (by_partition | own) & there & (np.isin(user, row.users) if row.users else True)
    rank = np.where(by_partition, 3, 2 if row.qos else 1 if row.users else 0)
    return jobs, np.where(own & row.over_partition, 4, rank)


def applies(
    row: Quota, user: IntArray, group: IntArray, groups: Sequence[tuple[str, str]], of_partition: Sequence[str]
) -> bool:
    """Return whether a quota applies to any job; the arguments are those of `quotas_of`."""
    return bool(_members(row, user, group, groups, np.asarray(of_partition))[0].any())


def qos_of(names: Sequence[str], partitions: Mapping[str, Partition], partition: IntArray) -> list[str]:
    """Return the QOS [J] of the partition of each job; empty if its partitions ("a|b") have different ones."""
    each = [{partitions.get(part, Partition()).qos for part in name.split("|")} for name in names]
    found = [one.pop() if len(one) == 1 else "" for one in each]
    return [found[place] for place in partition]
