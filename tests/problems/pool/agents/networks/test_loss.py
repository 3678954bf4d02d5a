"""The closed form of the loss's gradient against autograd."""

import numpy as np
import pytest
import torch

from pipeline.problems.pool.agents.networks.loss import Loss, loss_gradient
from pipeline.problems.pool.agents.networks.network import log_probabilities


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_the_closed_form_equals_autograd(masked: bool, weight: float) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 3, (50, 6)).astype(np.float32)
    may = rng.random((50, 6)) < 0.5
    may[np.arange(50), rng.integers(0, 6, 50)] = True
    action = np.array([rng.choice(np.flatnonzero(row)) for row in may])
    gain = rng.normal(0, 5, 50)
    logits = torch.from_numpy(values).requires_grad_()
    legal = may if masked else np.ones_like(may)
    chances = log_probabilities(logits, legal)
    spread = -(chances.exp() * chances).sum(dim=1)
    taken = chances.gather(1, torch.from_numpy(action)[:, None])[:, 0]
    (-(taken * torch.from_numpy(gain.astype(np.float32))).sum() - weight * spread.sum()).backward()  # type: ignore[no-untyped-call]
    gradient, entropy = np.empty_like(values), np.empty(50)
    loss_gradient(values, may, Loss(action, gain, masked, weight), gradient, entropy)
    assert logits.grad is not None
    assert gradient == pytest.approx(logits.grad.numpy(), abs=1e-5)
    assert entropy == pytest.approx(spread.detach().numpy(), abs=1e-5)
