"""The first call of PyTorch's vector functions, on one thread.

Where PyTorch comes with Intel's MKL, `sqrt`, `exp`, `tanh` and a dozen others are MKL's. MKL chooses the code of each
at its first call; of two threads that call it first at once, one may be given code of low precision for its half of
the tensor (pytorch/pytorch issue 188792; MKL 2024.2). Adam's square root is such a call: on a busy machine with two
threads, 7 of 240 trainings of a small network took another first step than the others.
"""

import functools

import torch

OF_MKL = (
    *("acos", "asin", "atan", "cos", "erf", "erfc", "erfinv", "exp"),
    *("log", "log10", "log2", "sin", "sqrt", "tan", "tanh", "trunc"),
)


@functools.cache
def settle() -> None:
    """Call each function on one number, which takes no second thread; once in a process, before anything is learned."""
    for dtype in (torch.float32, torch.float64):
        one = torch.full((1,), 0.5, dtype=dtype)
        for name in OF_MKL:
            getattr(torch, name)(one)
