"""Quotas of a site: what the running jobs of a QOS, an account or a user may hold together.

As in Slurm, a quota of a job's QOS replaces those without a QOS. This applies separately to processors and jobs, and to
`each: all` (Grp...) and the others (Max...). Replaced quotas still count the job. Jobs of unknown users count as those
of one user, and likewise for accounts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.config.evaluation import Quota
from pipeline.core.types import BoolArray, IntArray
from pipeline.errors import UserError

RESOURCES = ("cpus", "jobs")


class Counted(NamedTuple):
    """Fields of a `Queue` about quotas: G per job, Q in total. With `each`, a row is one quota per user or account."""

    counted: IntArray  # [J, G]
    bound: BoolArray  # [J, G]
    most: IntArray  # [Q]
    of_jobs: BoolArray  # [Q]


def quotas_of(rows: Sequence[Quota], user: IntArray, group: IntArray, groups: Sequence[tuple[str, str]]) -> Counted:
    """Return the quotas of jobs.

    Args:
        rows: rows of params.yaml.
        user: [J] user of each job.
        group: [J] index in `groups`.
        groups: pairs of account and QOS.

    Raises:
        UserError: a quota needs a QOS or accounts that the log does not record.
    """
    _, names = np.unique([account for account, _ in groups], return_inverse=True)
    keys = {"all": np.zeros_like(user), "user": user, "account": names[group]}
    mine = [_members(row, groups)[group] for row in rows]
    counted, bound, most, of_jobs = list[IntArray](), list[BoolArray](), list[int](), list[bool]()
    for row, jobs in zip(rows, mine, strict=True):
        for resource in (name for name in RESOURCES if getattr(row, name) is not None):
            replaced = np.zeros(len(user), dtype=bool)
            for other, theirs in zip(rows, mine, strict=True):
                same = (other.each == "all") == (row.each == "all") and getattr(other, resource) is not None
                replaced |= theirs & bool(same and other.qos and not row.qos)
            found, number = np.unique(keys[row.each][jobs], return_inverse=True)
            column = np.full(len(user), -1, dtype=np.int64)
            column[jobs] = len(most) + number
            counted.append(column)
            bound.append(~replaced)
            most += [getattr(row, resource)] * len(found)
            of_jobs += [resource == "jobs"] * len(found)
    shape = (len(rows) and len(counted), len(user))
    return Counted(
        np.ascontiguousarray(np.array(counted, dtype=np.int64).reshape(shape).T),
        np.ascontiguousarray(np.array(bound, dtype=bool).reshape(shape).T),
        np.array(most, dtype=np.float64),
        np.array(of_jobs, dtype=bool),
    )


def _members(row: Quota, groups: Sequence[tuple[str, str]]) -> BoolArray:
    """Return the groups to which a quota applies, as a mask."""
    for place, wanted in enumerate((row.accounts or row.each == "account", row.qos)):
        if wanted and not any(group[place] for group in groups):
            raise UserError(
                f"sites: quotas: the log does not name the {('accounts', 'QOS')[place]} of its jobs: import it again "
                "from a dump that does, by 'import slurm'"
            )
    return np.array([
        (not row.qos or qos == row.qos) and (not row.accounts or account in row.accounts) for account, qos in groups
    ])  # fmt: skip
