"""Quotas of a site: what the running jobs of a QOS, an account or a user may hold together.

As in Slurm, a quota of a job's QOS takes the place of those without a QOS, separately with processors and jobs, and
with `each: all` (Grp...) and the others (Max...). Jobs count in all of them. Jobs of unknown users or accounts count as
those of one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.config.evaluation import Quota
from pipeline.core.types import BoolArray, IntArray
from pipeline.errors import UserError

RESOURCES = ("cpus", "jobs")


class Counted(NamedTuple):
    """The fields of a `Queue` about quotas: G of one job, Q of all; `each` makes many."""

    counted: IntArray  # [J, G]
    bound: BoolArray  # [J, G]
    most: IntArray  # [Q]
    of_jobs: BoolArray  # [Q]


def quotas_of(rows: Sequence[Quota], user: IntArray, group: IntArray, groups: Sequence[tuple[str, str]]) -> Counted:
    """Return the quotas of jobs.

    Args:
        rows: of params.yaml.
        user: [J]
        group: [J] index in `groups`.
        groups: accounts and QOS of jobs.

    Raises:
        UserError: the log does not know a QOS or accounts.
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
    """Return which groups a quota is for."""
    for place, wanted in enumerate((row.accounts or row.each == "account", row.qos)):
        if wanted and not any(group[place] for group in groups):
            raise UserError(
                f"sites: quotas: the log does not name the {('accounts', 'QOS')[place]} of its jobs: import it again "
                "from a dump that does, by 'import slurm'"
            )
    return np.array([
        (not row.qos or qos == row.qos) and (not row.accounts or account in row.accounts) for account, qos in groups
    ])  # fmt: skip
