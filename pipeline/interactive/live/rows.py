"""Observations as rows of numbers, for stored policies without this package's types."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from pipeline.core.types import FloatArray


class Rows:
    """Layout of a row: the fields of an observation in order, each flattened in C order."""

    def __init__(self, axes: Mapping[str, str], whole: Collection[str], **sizes: int) -> None:
        """Lay out a row.

        Args:
            axes: letters of each field's axes after [B], in order of the fields.
            whole: fields of whole numbers.
            sizes: size of each letter's axis.
        """
        self.shapes = {name: tuple(sizes[letter] for letter in letters) for name, letters in axes.items()}
        self._whole = whole
        self._ends = np.cumsum([np.prod(shape, dtype=np.int64) for shape in self.shapes.values()])

    @property
    def width(self) -> int:
        """Return the length N of a row."""
        return int(self._ends[-1])

    def fields(self, rows: FloatArray) -> dict[str, Any]:
        """Return the fields [B, ...] of rows [B, N]."""
        columns = np.split(np.asarray(rows, np.float64), self._ends[:-1], axis=1)
        shaped = zip(self.shapes.items(), columns, strict=True)
        found = {name: np.ascontiguousarray(column).reshape(len(rows), *shape) for (name, shape), column in shaped}
        return found | {name: np.rint(found[name]).astype(np.int64) for name in self._whole}
