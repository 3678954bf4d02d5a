"""The convolutional network on distinct parts of images, which are never drawn whole."""

from functools import cache

import numpy as np
import pytest
import torch
from builders import observed, wander

from pipeline.core.config import Cnn as CnnConfig
from pipeline.problems.pool.agents.networks import cnn
from pipeline.problems.pool.agents.networks.cnn import STRIPS_AT_ONCE, Cnn, Patchwork, rounded_up
from pipeline.problems.pool.agents.networks.encodings import Layout, draw
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.env.nouns import Cluster, CompactObservation

DEEPRM = Cluster((10, 10), 20, 10, 60, False)
LAYOUTS = {
    "deeprm": DEEPRM,
    "offline": Cluster((4, 4), 8, 12, 0, False),
    "unequal": Cluster((4, 3), 8, 3, 5, True),
    "one resource": Cluster((5,), 6, 2, 6, True),
    "three resources": Cluster((2, 5, 3), 5, 4, 7, False),
    "two columns of backlog": Cluster((3, 2), 4, 3, 7, False),
}
every_layout = pytest.mark.parametrize("of", list(LAYOUTS.values()), ids=list(LAYOUTS))
with_and_without_clock = pytest.mark.parametrize("with_clock", [False, True])


@cache
def seen(of: Cluster, episodes: int = 4, jobs: int = 20) -> CompactObservation:
    """What is seen along random walks; tests must not change it."""
    return observed(of, wander, episodes=episodes, jobs=jobs)


def untrained(of: Cluster, with_clock: bool = True) -> Cnn:
    network = build(CnnConfig(name="cnn", channels=(8, 16), hidden=72, clock=with_clock), of, seed=3)
    assert isinstance(network, Cnn)
    return network


def gradients(network: Cnn, logits: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradients of a loss that tells every logit from every other."""
    network.zero_grad()
    (logits * torch.linspace(0, 1, logits.numel()).view_as(logits)).sum().backward()  # type: ignore[no-untyped-call]
    return {name: weight.grad.clone() for name, weight in network.named_parameters() if weight.grad is not None}


def assert_close(ours: torch.Tensor, dense: torch.Tensor, exact: torch.Tensor, by: float = 1e-5) -> None:
    """So close to the exact ones by their largest value, or no further than whole images come in float32."""
    assert ours.shape == exact.shape
    away, dense_away = (float((values - exact).detach().abs().max()) for values in (ours, dense))
    assert away <= max(by * float(exact.detach().abs().max()), dense_away)


@with_and_without_clock
@every_layout
@pytest.mark.usefixtures("two_threads")
def test_the_cnn_equals_convolutions_of_whole_drawn_images(of: Cluster, with_clock: bool) -> None:
    view, network = seen(of, episodes=2), untrained(of, with_clock)
    image = torch.from_numpy(draw(view, network.layout))
    ours, dense, played = network(view), network.on_image(image), network.frozen()(view)
    found, expected = gradients(network, ours), gradients(network, dense)
    double = network.double()
    exact = double.on_image(image.double())
    assert_close(ours, dense, exact)
    assert_close(torch.from_numpy(played), dense, exact)
    assert set(found) == set(expected) == set(network.state_dict())
    for name, gradient in gradients(double, exact).items():
        assert_close(found[name], expected[name], gradient, by=2e-5)  # 100,000 terms that nearly cancel


@every_layout
def test_equal_patches_have_one_number_and_others_another(of: Cluster) -> None:
    view, layout = seen(of), Layout.of(of, clock=True)
    patchwork = Patchwork(layout)
    where = patchwork.add(view)
    columns = layout.columns // 4
    image = np.pad(draw(view, layout), ((0, 0), (0, 0), (6, 20)), constant_values=-1)  # -1: beyond the image
    patches = np.stack([image[:, :, 4 * w : 4 * w + 16] for w in range(columns)], axis=1).reshape(-1, 16 * of.horizon)
    place = np.tile(np.arange(columns), len(where))
    number = patchwork.placed[where.ravel()]
    assert (number[:, 1] == place).all()
    _, expected = np.unique(patches, axis=0, return_inverse=True)
    pairs = {(int(ours), int(drawn)) for ours, drawn in zip(number[:, 0], expected.ravel(), strict=True)}
    assert len(pairs) == expected.max() + 1 == len(patchwork.strips)
    assert len(patchwork.placed) == len({*zip(expected.ravel().tolist(), place.tolist(), strict=True)})


@every_layout
def test_a_strip_shows_what_is_drawn_there(of: Cluster) -> None:
    view, layout = seen(of), Layout.of(of, clock=True)
    patchwork = Patchwork(layout)
    where = patchwork.add(view)
    image = np.pad(draw(view, layout), ((0, 0), (0, 0), (6, 20)))
    beyond = 0
    for row, placed in enumerate(where):
        for patch, w in patchwork.placed[placed]:
            for k, strip in enumerate(patchwork.strips[patch]):
                if 0 <= 2 * w - 2 + k < layout.columns // 2:
                    first = 4 * w + 2 * k
                    assert (patchwork.cells[strip] == image[row, :, first : first + 6]).all()
                else:
                    beyond += 1
                    assert strip == -1
    assert beyond


def test_what_is_met_again_gets_no_new_number() -> None:
    view = seen(DEEPRM)
    patchwork = Patchwork(Layout.of(DEEPRM, clock=True))
    where = patchwork.add(view)
    sizes = len(patchwork.cells), len(patchwork.strips), len(patchwork.placed)
    assert (patchwork.add(view.take(slice(None, None, -1))) == where[::-1]).all()
    assert (len(patchwork.cells), len(patchwork.strips), len(patchwork.placed)) == sizes
    assert sizes[2] < where.size / 4


@pytest.fixture
def view() -> CompactObservation:
    return seen(DEEPRM, episodes=6, jobs=30)


def test_a_view_is_judged_the_same_in_any_company_bit_for_bit(view: CompactObservation) -> None:
    network = untrained(DEEPRM)
    together = network.frozen()(view)
    alone, forward = network.frozen(), network.frozen()
    every = np.arange(0, len(together), 4)
    one_by_one = np.concatenate([forward(view.take(slice(k, k + 1))) for k in every])
    assert (one_by_one == together[every]).all()
    some = np.random.default_rng(1).permutation(len(together))[:37]
    assert (alone(view.take(some)) == together[some]).all()


def test_a_view_is_judged_the_same_after_forgetting(view: CompactObservation, monkeypatch: pytest.MonkeyPatch) -> None:
    network = untrained(DEEPRM)
    together = network.frozen()(view)
    forgotten = 0

    def forget(self: cnn.FrozenCnn) -> None:
        nonlocal forgotten
        forgotten += 1
        forgets(self)

    forgets = cnn.FrozenCnn._forget
    monkeypatch.setattr(cnn, "MAX_PLACED", 4 * 56 * 4)
    monkeypatch.setattr(cnn.FrozenCnn, "_forget", forget)
    assert (network.frozen()(view) == together).all()
    assert forgotten > 2


def test_a_judge_keeps_to_the_weights_it_was_made_of(view: CompactObservation) -> None:
    network = untrained(DEEPRM)
    forward = network.frozen()
    before = forward(view.take(slice(0, 5)))
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.1)
    assert (forward(view.take(slice(0, 5))) == before).all()
    assert (forward(view)[:5] == before).all()
    assert not (network.frozen()(view.take(slice(0, 5))) == before).any()


def test_logits_and_gradients_have_the_same_bytes_every_time_and_for_one_or_two_threads(
    view: CompactObservation, request: pytest.FixtureRequest
) -> None:
    network = untrained(DEEPRM)
    logits, frozen = network(view), network.frozen()(view)
    found = gradients(network, logits)
    request.getfixturevalue("two_threads")  # of numba: what we compiled ourselves
    assert torch.equal(network(view), logits)
    assert (network.frozen()(view) == frozen).all()
    for name, gradient in gradients(network, network(view)).items():
        assert torch.equal(gradient, found[name]), name


def test_strips_come_in_few_sizes_for_onednn_keeps_room_for_each() -> None:
    sizes = {}
    for count in range(0, 3 * STRIPS_AT_ONCE):
        found = rounded_up(np.ones((count, 1), dtype=np.float32))
        assert found[:count].all()
        assert not found[count:].any()
        assert len(found) - count <= min(count // 4, STRIPS_AT_ONCE - 1)
        sizes[count] = len(found)
    blocks = {min(size - first, STRIPS_AT_ONCE) for size in sizes.values() for first in range(0, size, STRIPS_AT_ONCE)}
    assert len(blocks) <= 50
