"""Observations as the rows of numbers that stored policies read."""

from typing import Any

import numpy as np

from pipeline.core.types import FloatArray
from pipeline.interactive.live.rows import Rows


def flattened(layout: Rows, view: Any, kind: type = np.float32) -> FloatArray:
    """Return observations as rows [B, N]."""
    fields = [np.asarray(getattr(view, name), np.float64).reshape(len(view.now), -1) for name in layout.shapes]
    return np.concatenate(fields, axis=1).astype(kind)
