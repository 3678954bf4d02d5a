"""Networks and their weights by name: what is stored, and put back into a network that must be of the same shape."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import torch

from pipeline.config import Card, described, difference
from pipeline.core import FloatArray
from pipeline.errors import UserError


def weights_of(network: torch.nn.Module) -> dict[str, FloatArray]:
    """Return a network's weights by name, to be stored."""
    return {name: value.detach().cpu().contiguous().numpy() for name, value in network.state_dict().items()}


def put_back(network: torch.nn.Module, weights: Mapping[str, FloatArray], agent: str) -> None:
    """Give a network the weights of a stored one.

    Raises:
        UserError: they are not those of such a network.
    """
    differing = difference(described(weights_of(network)), described(weights))
    if differing:
        raise UserError(f"model of agent '{agent}': {differing}")
    network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})


def must_be_as_asked(place: Path, found: Card, asked: Card, names: Iterable[str]) -> None:
    """Refuse a stored network that was made for another problem or network than params.yaml has now.

    Raises:
        UserError: one of the named fields of the cards differs.
    """
    for name in names:
        here, now = getattr(found, name), getattr(asked, name)
        if here != now:
            raise UserError(f"{place}: {name} {here}; params.yaml has {now} now: run 'dvc repro' first")


OF_MKL = (
    *("acos", "asin", "atan", "cos", "erf", "erfc", "erfinv", "exp"),
    *("log", "log10", "log2", "sin", "sqrt", "tan", "tanh", "trunc"),
)


@cache
def settle() -> None:
    """Call each vector function on one number, on one thread; once in a process, before anything is learned.

    Where PyTorch comes with Intel's MKL, `sqrt`, `exp`, `tanh` and a dozen others are MKL's. MKL chooses the code of
    each at its first call; of two threads that call it first at once, one may be given code of low precision for its
    half of the tensor (pytorch/pytorch issue 188792; MKL 2024.2). Adam's square root is such a call: on a busy machine
    with two threads, 7 of 240 trainings of a small network took another first step than the others.
    """
    for dtype in (torch.float32, torch.float64):
        one = torch.full((1,), 0.5, dtype=dtype)
        for name in OF_MKL:
            getattr(torch, name)(one)
