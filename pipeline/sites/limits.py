"""Users' requested limits against their run times: who could start earlier by asking for less."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline.core.schemas import LIMITS
from pipeline.sites.queue import Period
from pipeline.sites.slurm_settings import LONGEST_S

FEWEST = 10  # jobs of a user who is reported
SHARE = 0.95  # of a user's jobs that the suggested limit would cover
SPARE = 1.2  # of the suggested limit above what these jobs needed


def limits_table(period: Period) -> pd.DataFrame:
    """Return a row for each user with enough jobs in a period, the most processor time reserved in vain first.

    `used` is the median share of the limit that was used; `suggested_s` would have covered 95 % of the user's jobs with
    a fifth to spare, but is at most the user's longest limit; `in_vain_h` are processor hours that were reserved and
    not used. Jobs with a limit of a year or more had none, and do not count.
    """
    limit = period.queue.limit[period.first :]
    limited = limit < LONGEST_S
    user = np.where(limited, period.user[period.first :], -1)
    run, cpus = period.run, period.queue.cpus[period.first :]
    rows = [
        _row(int(one), *(column[user == one] for column in (run, limit, cpus))) for one in np.unique(user[user >= 0])
    ]
    found = pd.DataFrame([row for row in rows if row["jobs"] >= FEWEST], columns=list(LIMITS.columns))
    found = found.astype({name: str(column.dtype) for name, column in LIMITS.columns.items()})  # also if it is empty
    return found.sort_values(["in_vain_h", "user"], ascending=[False, True], ignore_index=True)


def _row(user: int, run: np.ndarray, limit: np.ndarray, cpus: np.ndarray) -> Mapping[str, float]:
    return {
        "user": user,
        "jobs": len(run),
        "limit_s": float(np.median(limit)),
        "run_s": float(np.median(run)),
        "used": float(np.median(np.minimum(run / limit, 1.0))),
        "suggested_s": float(min(SPARE * np.quantile(run, SHARE, method="inverted_cdf"), np.max(limit))),
        "in_vain_h": float((np.maximum(limit - run, 0.0) * cpus).sum() / 3600),
    }
