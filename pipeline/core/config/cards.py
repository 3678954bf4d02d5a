"""Cards: descriptions of stored networks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from pipeline.core.config.records import Frozen

POOL = "pool"  # the problem of cards that name none
FORMAT: Literal[2] = 2  # of the card


class Tensor(Frozen):
    """One tensor of the weights."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        """Return shape and type, such as 20 x 11 float32."""
        return f"{' x '.join(str(size) for size in self.shape) or 'one'} {self.dtype}"


class Weights(Frozen):
    """Content of the weights file."""

    sha256: str
    tensors: dict[str, Tensor]
    packages: dict[str, str]  # and their versions that made it; not checked


class Card(Frozen):
    """All that is needed to rebuild a stored network, and the problem that it was trained on."""

    if TYPE_CHECKING:  # the order of fields differs by problem
        agent: str
        scenario: str
        objective: str
        weights: Weights | None

    @classmethod
    def word(cls) -> str:
        """Return the name of the problem in params.yaml."""
        named = cls.model_fields.get("problem")
        return POOL if named is None else str(get_args(named.annotation)[0])


def described(weights: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return shapes and types of arrays, in the order of their names."""
    return {name: Tensor(shape=value.shape, dtype=str(value.dtype)) for name, value in sorted(weights.items())}


def difference(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> str:
    """Return the first difference, as text; "" if there is none.

    >>> difference({"bias": Tensor(shape=(3,), dtype="float32")}, {"bias": Tensor(shape=(2, 3), dtype="float32")})
    'tensor bias: expected 3 float32, found 2 x 3 float32'
    """
    for name in [*expected, *found]:
        wanted, got = expected.get(name), found.get(name)
        if wanted != got:
            return f"tensor {name}: expected {wanted or 'none'}, found {got or 'none'}"
    return ""
