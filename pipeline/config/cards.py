"""What a stored network says of itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from pipeline.config.records import Frozen

POOL = "pool"  # the problem of cards that name none
FORMAT: Literal[2] = 2  # of the card; 1 did not describe the weights


class Tensor(Frozen):
    """One tensor of the weights."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        """Return shape and type, as 20 x 11 float32."""
        return f"{' x '.join(str(size) for size in self.shape) or 'one'} {self.dtype}"


class Weights(Frozen):
    """What is in the weights file."""

    sha256: str
    tensors: dict[str, Tensor]
    packages: dict[str, str]  # and versions that made it; said and not checked


class Card(Frozen):
    """What a stored network is: all that is needed to rebuild it, and the problem it was trained on."""

    if TYPE_CHECKING:  # each kind of card has them at places of its own
        agent: str
        scenario: str
        objective: str
        weights: Weights | None

    @classmethod
    def word(cls) -> str:
        """Return params.yaml's word for that problem."""
        named = cls.model_fields.get("problem")
        return POOL if named is None else str(get_args(named.annotation)[0])


class Array(Protocol):
    """What has a shape and a type, as numpy's arrays."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes."""

    @property
    def dtype(self) -> object:
        """Return the type of the elements."""


def described(weights: Mapping[str, Array]) -> dict[str, Tensor]:
    """Return shapes and types by name, in the order of names."""
    return {name: Tensor(shape=value.shape, dtype=str(value.dtype)) for name, value in sorted(weights.items())}


def difference(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> str:
    """Return the first tensor that differs, with what was expected and found; nothing if none does.

    >>> difference({"bias": Tensor(shape=(3,), dtype="float32")}, {"bias": Tensor(shape=(2, 3), dtype="float32")})
    'tensor bias: expected 3 float32, found 2 x 3 float32'
    """
    for name in [*expected, *found]:
        wanted, got = expected.get(name), found.get(name)
        if wanted != got:
            return f"tensor {name}: expected {wanted or 'none'}, found {got or 'none'}"
    return ""
