"""Amounts as Kubernetes writes them: 100m, 2, 1.5, 64Mi, 1e3."""

import math
import re

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
SUFFIXES = {
    **{"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0},
    **{suffix: 1000.0**power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": 1024.0**power for power, suffix in enumerate("KMGTPE", start=1)},
}
WRITTEN = re.compile(r"\+?(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:([eE][+-]?\d{1,3})|([numkMGTPE]i?|Ki)?)")


def amount(text: object) -> float:
    """Return an amount in whole units: cores, bytes, pieces.

    Raises:
        ValueError: it is none, or below 0.

    >>> [amount(text) for text in ("100m", "2", "1.5", "64Mi", "1e3", 3)]
    [0.1, 2.0, 1.5, 67108864.0, 1000.0, 3.0]
    """
    found = WRITTEN.fullmatch(str(text))
    if found is None or found[3] not in (None, *SUFFIXES):
        raise ValueError(f"expected an amount as 100m or 64Mi, got '{str(text)[:40]}'")
    value = float(found[1] + (found[2] or "")) * SUFFIXES[found[3] or ""]
    if not math.isfinite(value):
        raise ValueError(f"expected an amount, got '{str(text)[:40]}'")
    return value
