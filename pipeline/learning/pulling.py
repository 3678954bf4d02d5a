"""A gradient that is known is handed on to the weights behind it."""

from torch import Tensor


def pull(values: Tensor, gradient: Tensor) -> None:
    """Add what a gradient by some values comes to, to the gradients of the weights that they depend on.

    It is `values.backward(gradient)`, to the same bytes: that one imports sympy first, 0.2 s of a process.
    """
    (values * gradient).sum().backward()  # type: ignore[no-untyped-call]
