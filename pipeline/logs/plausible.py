"""What a log says that cannot be: reasons to correct it before anything is concluded from it."""

import numpy as np

from pipeline.core import IntArray
from pipeline.logs.trace import DAY_S, Trace

MOST_YEARS, MOST_OVER = 50, 0.5


def implausible(trace: Trace, capacity: IntArray) -> list[str]:
    """Return a line for each thing that cannot be; `capacity` is that of the machines [K, R]."""
    years = (trace.submit_s[-1] - trace.submit_s[0]) / DAY_S / 365
    over = float(np.mean(trace.run_s > 2 * trace.estimate_s))
    return [
        *([f"it spans {years:,.0f} years (are its times milliseconds?)"] if years > MOST_YEARS else []),
        *([f"{over:.0%} of the jobs run twice as long as their limit (minutes?)"] if over > MOST_OVER else []),
    ]
