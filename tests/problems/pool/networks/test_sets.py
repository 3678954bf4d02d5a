"""DeepRM3's network: compiled code does what torch's does, forwards and backwards."""

import numba
import numpy as np
import pytest
import torch
from builders import many, observation, viewed, wander
from set_learning import sets

from pipeline.config import Params
from pipeline.problems.pool.networks.compiled_sets import FEW
from pipeline.problems.pool.networks.describing import relative
from pipeline.problems.pool.networks.loss import Loss
from pipeline.problems.pool.networks.networks import build
from pipeline.problems.pool.networks.relative import ELAPSED, ENDS, OF_REST, TO_END, Relative
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster

CLUSTER = Cluster((5, 4), 6, 4, 4, False)


def met(decisions: int = 2 * FEW) -> Relative:
    """What is observed along a random walk."""
    observed = relative(viewed(CLUSTER, wander, episodes=8)).take(slice(decisions))
    assert len(observed.may) == decisions
    return observed


def loss_of(observed: Relative) -> Loss:
    """Random legal actions, advantages of either sign, and a term of entropy."""
    rng = np.random.default_rng(3)
    action = np.where(observed.may, rng.random(observed.may.shape), -1).argmax(axis=1)
    return Loss(action, rng.normal(size=len(action)), True, 0.3)


def confident(elapsed: bool, ending: bool = False) -> Sets:
    """A network whose actions are far from equally likely."""
    network = sets(hidden=16, elapsed=elapsed, ending=ending)
    with torch.no_grad():
        for layer in (network.score, network.direct, network.void):
            layer.weight *= 10.0
    return network


def test_the_networks_of_params_are_as_small_as_promised(params: Params) -> None:
    network = build(params.agents["deeprm3"].network, CLUSTER, seed=1)
    count = sum(weight.numel() for weight in network.parameters())
    # of a job, of all, each one's part, all's part, score, direct, void
    assert sum(weight.numel() for weight in sets(hidden=32).parameters()) == (
        22 * 32 + (64 + 28 + 1) * 32 + 33 * 32 + 32 * 32 + 32 + 21 + (32 + 28 + 1)
    )
    assert count <= 50_000


@pytest.mark.parametrize("decisions", [FEW - 1, 2 * FEW])
@pytest.mark.parametrize("elapsed", [False, True])
def test_compiled_scores_are_those_of_torch(elapsed: bool, decisions: int) -> None:
    network, observed = confident(elapsed), met(decisions)
    plain = network(observed).detach().numpy()
    np.testing.assert_allclose(network.frozen()(observed)[observed.may], plain[observed.may], rtol=1e-4, atol=1e-5)
    assert np.ptp(plain[observed.may]) > 0.5


def test_without_a_compiler_torch_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    network, observed = confident(elapsed=False), met(FEW)
    compiled = network.frozen()(observed)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    monkeypatch.setattr(Sets, "compiled", None)  # not asked
    scores = network.frozen()(observed)
    np.testing.assert_allclose(scores[observed.may], compiled[observed.may], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("elapsed", [False, True])
def test_the_compiled_gradient_is_that_of_autograd(elapsed: bool) -> None:
    network, observed = confident(elapsed), met()
    loss = loss_of(observed)
    entropy = network.add_gradient(observed, loss)
    found = [weight.grad for weight in network.parameters()]
    network.zero_grad()
    chances = torch.log_softmax(network(observed).masked_fill(~torch.from_numpy(observed.may), -torch.inf), dim=1)
    taken = chances.gather(1, torch.from_numpy(loss.action)[:, None])[:, 0]
    spread = -(chances.exp() * chances.masked_fill(chances.isneginf(), 0.0)).sum()
    (-(taken * torch.from_numpy(loss.gain)).sum() - loss.weight * spread).backward()
    assert entropy == pytest.approx(float(spread.detach()), rel=1e-4)
    for one, weight in zip(found, network.parameters(), strict=True):
        assert one is not None
        assert weight.grad is not None
        assert float(weight.grad.abs().max()) > 0.01
        torch.testing.assert_close(one, weight.grad, rtol=1e-3, atol=1e-4 * float(weight.grad.abs().max()))


def test_gradients_of_two_parts_add_up_to_that_of_the_whole() -> None:
    whole, parts, observed = confident(True), confident(True), met()
    loss = loss_of(observed)
    total = whole.add_gradient(observed, loss)
    halves = [slice(0, 50), slice(50, None)]
    assert sum(parts.add_gradient(observed.take(half), loss.take(half)) for half in halves) == pytest.approx(total)
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert one.grad is not None
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5 * float(one.grad.abs().max()))


def test_no_decision_has_no_gradient() -> None:
    network, observed = confident(True), met().take(slice(0))
    assert network.add_gradient(observed, Loss(np.empty(0, dtype=np.int64), np.empty(0), True, 0.1)) == 0.0
    assert all(weight.grad is not None and not weight.grad.any() for weight in network.parameters())


def test_a_network_that_is_not_told_how_long_it_has_run_does_not_know() -> None:
    """Of nothing that has arrived, the load so far is 0 at any time: only the clock itself differs."""
    early = many(observation(duration=[3, 1, 4], free=[[9, 9]]), 2)
    observed = relative(early._replace(now=np.array([0, 500])))
    for elapsed in (False, True):
        network = confident(elapsed)
        for logits in (network.frozen()(observed), network(observed).detach().numpy()):
            assert np.allclose(logits[0], logits[1], rtol=1e-5) == (not elapsed)
        network.add_gradient(observed, Loss(np.array([0, 1]), np.array([1.0, -2.0]), True, 0.1))
        for weight in (network.of_all.weight, network.void.weight):
            assert weight.grad is not None
            assert bool(weight.grad[:, -OF_REST + ELAPSED].any()) == elapsed


def test_a_network_knows_the_end_of_arrivals_only_if_it_is_told() -> None:
    soon = many(observation(duration=[3, 1, 4], free=[[9, 9]]), 2)
    observed = relative(soon._replace(to_end=np.array([3.0, np.inf])))
    assert observed.rest[:, ENDS].tolist() == [1.0, 0.0]
    assert observed.rest[:, TO_END] == pytest.approx([np.log(4) / 4, 0.0])
    for ending in (False, True):
        network = confident(False, ending)
        for logits in (network.frozen()(observed), network(observed).detach().numpy()):
            assert np.allclose(logits[0], logits[1], rtol=1e-5) == (not ending)
        network.add_gradient(observed, Loss(np.array([0, 1]), np.array([1.0, -2.0]), True, 0.1))
        for weight in (network.of_all.weight, network.void.weight):
            assert weight.grad is not None
            assert bool(weight.grad[:, TO_END - OF_REST].any()) == ending


@pytest.mark.usefixtures("two_threads")
def test_threads_change_the_gradient_by_rounding_alone_and_scores_not_at_all() -> None:
    network, observed = confident(True), met()
    found = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        network.zero_grad()
        entropy = network.add_gradient(observed, loss_of(observed))
        found.append((network.frozen()(observed), entropy, [weight.grad for weight in network.parameters()]))
    (logits, entropy, alone), (others, entropy_of_two, shared) = found
    assert np.array_equal(logits, others)
    assert entropy == pytest.approx(entropy_of_two)
    for one, other in zip(alone, shared, strict=True):
        assert one is not None
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * float(one.abs().max()))


def test_hidden_units_must_fill_vectors() -> None:
    with pytest.raises(ValueError, match="expected a multiple of 8 hidden units, got 12"):
        Sets(hidden=12, elapsed=False)


def test_at_first_all_actions_are_about_equally_likely() -> None:
    observed = met()
    logits = sets(hidden=32).frozen()(observed)
    chances = np.where(observed.may, np.exp(logits), 0)
    chances /= chances.sum(axis=1, keepdims=True)
    assert (chances.max(axis=1) < 1.5 / observed.may.sum(axis=1)).all()
