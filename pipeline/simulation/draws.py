"""The draws of core, compiled."""

import numpy as np

from pipeline.simulation.compiled import inlined


@inlined
def _mix(bits: np.uint64) -> np.uint64:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@inlined
def uniform(key: np.uint64, decision: int) -> float:
    """Return core.uniform of one key."""
    bits = _mix(key + np.uint64(decision) * np.uint64(0x9E3779B97F4A7C15))
    return float(bits >> np.uint64(11)) / 9007199254740992.0
