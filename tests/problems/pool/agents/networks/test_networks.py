"""Networks and the image they see, which DeepRM's network never draws."""

from functools import cache

import numpy as np
import pytest
import torch
from builders import many, observation, observed, wander

from pipeline.core.config import Cnn, Mlp
from pipeline.core.types import Observation
from pipeline.problems.pool.agents.networks import lookup
from pipeline.problems.pool.agents.networks.compiled_mlp import BLOCK
from pipeline.problems.pool.agents.networks.encodings import Layout, clock, draw, paint
from pipeline.problems.pool.agents.networks.lookup import places_of
from pipeline.problems.pool.agents.networks.loss import Loss
from pipeline.problems.pool.agents.networks.mlp import Mlp as MlpNetwork
from pipeline.problems.pool.agents.networks.network import Network
from pipeline.problems.pool.agents.networks.networks import NETWORKS, build
from pipeline.problems.pool.env.nouns import Cluster, CompactObservation, compact

DEEPRM = Cluster((10, 10), 20, 10, 60, False)
OFFLINE = Cluster((10, 10), 20, 30, 0, False)
SMALL = Cluster((4, 3), 8, 3, 5, True)

CONFIGS: dict[str, Mlp | Cnn] = {
    "mlp": Mlp(name="mlp", hidden=20, clock=False),
    "cnn": Cnn(name="cnn", channels=(8, 16), hidden=72, clock=True),
}


def weights(network: Network) -> int:
    return sum(weight.numel() for weight in network.parameters())


def test_the_mlp_has_the_weights_of_the_paper() -> None:
    # (20 * 223 + 1) * 20 + (20 + 1) * 11, on 2 * (10 + 10 * 10) + 60 / 20 columns
    assert weights(build(CONFIGS["mlp"], DEEPRM, seed=1)) == 89_451


def test_the_cnn_has_the_weights_of_the_paper() -> None:
    # (25 + 1) * 8 + (25 * 8 + 1) * 16 + (16 * 5 * 56 + 1) * 72 + (72 + 1) * 11, on 20 x 224
    assert Layout.of(DEEPRM, clock=True).columns == 224
    assert weights(build(CONFIGS["cnn"], DEEPRM, seed=1)) == 326_859


@pytest.mark.parametrize(
    ("of", "with_clock", "columns"),
    [(DEEPRM, False, 223), (DEEPRM, True, 224), (OFFLINE, False, 620), (OFFLINE, True, 621), (SMALL, False, 29)],
)
def test_an_image_is_as_wide_as_its_parts(of: Cluster, with_clock: bool, columns: int) -> None:
    assert Layout.of(of, with_clock).columns == columns  # of SMALL: (4 + 3) * (1 + 3) and 5 / 8, rounded up


def picture(image: np.ndarray) -> list[str]:
    return ["".join("#" if cell == 1 else "." if cell == 0 else "?" for cell in row) for row in image]


def tiny(backlog: int) -> Observation:
    """Two resources of 3 and 2 units, 3 steps; two slots, the second empty."""
    return observation(
        duration=[2, 0],
        demand=[[2, 1], [0, 0]],
        free=[[1, 2], [2, 0]],
        capacity=[3, 2],
        backlog=backlog,
        since_arrival=4,
        horizon=3,
    )


def see(backlog: int) -> CompactObservation:
    return compact(tiny(backlog))


def test_an_image_is_drawn_as_by_hand() -> None:
    # cpu in use | slot 1 | slot 2 | memory in use | slot 1 | slot 2 | backlog
    image = draw(see(backlog=3), Layout((3, 2), 3, 2, 5, clock=False))
    assert picture(image[0]) == [
        "##." + "##." + "..." + ".." + "#." + ".." + "##",
        "#.." + "##." + "..." + "##" + "#." + ".." + "#.",
        "..." + "..." + "..." + ".." + ".." + ".." + "..",
    ]


def test_a_backlog_beyond_the_image_fills_the_places_it_has() -> None:
    image = draw(see(backlog=9), Layout((3, 2), 3, 2, 5, clock=False))
    assert [row[-2:] for row in picture(image[0])] == ["##", "##", "#."]


def test_an_image_without_backlog_ends_with_the_last_slot() -> None:
    image = draw(see(backlog=3), Layout((3, 2), 3, 2, 0, clock=False))
    assert picture(image[0])[0] == "##." + "##." + "..." + ".." + "#." + ".."


def test_the_clock_fills_the_last_column() -> None:
    image = draw(see(backlog=3), Layout((3, 2), 3, 2, 5, clock=True))
    assert image.shape == (1, 3, 18)
    assert image[0, :, -1] == pytest.approx([0.4, 0.4, 0.4])
    assert picture(image[0, :, :-1])[0].endswith("##")


@pytest.mark.parametrize(("steps", "shown"), [(0, 0.0), (3, 0.3), (10, 1.0), (25, 1.0)])
def test_the_clock_is_full_after_ten_steps(steps: int, shown: float) -> None:
    assert clock(compact(observation(duration=[1], since_arrival=steps)))[0] == pytest.approx(shown)


def test_pieces_are_those_of_the_rows_slots_and_backlog_that_are_not_empty() -> None:
    layout = Layout((3, 2), 3, 2, 5, clock=True)
    observed, places = compact(tiny(backlog=9)), places_of(layout)
    found = np.empty(11, dtype=np.int64)
    count = lookup.pieces.py_func(observed, places, 0, found)
    cpu_rows, cpu_slot = [0 * 4 + 2, 1 * 4 + 1], 12 + 2 * 4 + 2  # 4 = 0 to 3 units; 16 = 4 durations, 0 to 3, times 4
    memory_rows, memory_slot = [44 + 1 * 3 + 2], 53 + 2 * 3 + 1
    assert sorted(found[:count].tolist()) == sorted([*cpu_rows, cpu_slot, *memory_rows, memory_slot, 77 + 5])
    assert places.clock == 77 + 6


LAYOUTS = {
    "deeprm": DEEPRM,
    "offline": Cluster((4, 4), 8, 12, 0, False),
    "unequal": SMALL,
    "one resource": Cluster((5,), 6, 2, 6, True),
    "three resources": Cluster((2, 5, 3), 5, 4, 7, False),
    "wide, one slot": Cluster((300, 2), 5, 1, 7, False),
}


@cache
def seen(of: Cluster, episodes: int = 4, jobs: int = 20) -> CompactObservation:
    """What is seen along random walks; tests must not change it."""
    return observed(of, wander, episodes=episodes, jobs=jobs)


def gradients(network: Network, logits: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradients of a loss that tells every logit from every other."""
    network.zero_grad()
    (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum().backward()  # type: ignore[no-untyped-call]
    return {name: weight.grad.clone() for name, weight in network.named_parameters() if weight.grad is not None}


def assert_close(ours: torch.Tensor, dense: torch.Tensor, by: float = 1e-5) -> None:
    """Equal but for so much of the largest value: the two sum in another order."""
    assert ours.shape == dense.shape
    assert float((ours - dense).abs().max().detach()) <= by * float(dense.abs().max().detach())


@pytest.mark.parametrize("with_clock", [False, True])
@pytest.mark.parametrize("of", list(LAYOUTS.values()), ids=list(LAYOUTS))
@pytest.mark.usefixtures("two_threads")
def test_the_mlp_equals_the_dense_layer_on_the_drawn_image(of: Cluster, with_clock: bool) -> None:
    view = seen(of)
    network = build(Mlp(name="mlp", hidden=20, clock=with_clock), of, seed=3)
    assert isinstance(network, MlpNetwork)
    image = torch.from_numpy(draw(view, network.layout))
    ours, dense = network(view), network.on_image(image)
    assert_close(ours, dense)
    by_pieces, by_image = gradients(network, ours), gradients(network, network.on_image(image))
    assert set(by_pieces) == set(by_image) == {"first.weight", "first.bias", "last.weight", "last.bias"}
    for name, gradient in by_image.items():
        assert_close(by_pieces[name], gradient)


def learned(
    network: Network, view: CompactObservation, loss: Loss, compiled: bool
) -> tuple[float, dict[str, torch.Tensor]]:
    """The entropy and the gradients of a loss, by the network's own way or by autograd; on top of 1 everywhere."""
    for weight in network.parameters():
        weight.grad = torch.ones_like(weight)
    entropy = (network if compiled else super(type(network), network)).add_gradient(view, loss)
    return entropy, {name: weight.grad - 1.0 for name, weight in network.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize(
    ("of", "masked", "hidden"),
    [
        *((LAYOUTS[name], name != "unequal", 20) for name in LAYOUTS),
        *((LAYOUTS["unequal"], masked, hidden) for masked, hidden in ((True, 3), (False, 3), (True, 41))),
    ],
)
@pytest.mark.usefixtures("two_threads")
def test_the_compiled_gradient_of_the_loss_is_that_of_autograd(of: Cluster, masked: bool, hidden: int) -> None:
    view, rng = seen(of, episodes=60, jobs=40), np.random.default_rng(1)
    action = np.array([rng.choice(np.flatnonzero(row)) for row in view.may], dtype=np.int32)
    assert len(action) > 2 * BLOCK
    loss = Loss(action, rng.normal(0, 5, len(action)), masked, 0.3)
    network = build(Mlp(name="mlp", hidden=hidden, clock=True), of, seed=3)
    (ours, found), (theirs, by_torch) = (learned(network, view, loss, compiled) for compiled in (True, False))
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert set(found) == set(by_torch) == {"first.weight", "first.bias", "last.weight", "last.bias"}
    for name, gradient in by_torch.items():
        assert_close(found[name], gradient, by=1e-4)  # of thousands of decisions, some of which nearly cancel out


@pytest.mark.parametrize("with_clock", [False, True])
@pytest.mark.parametrize("of", list(LAYOUTS.values()), ids=list(LAYOUTS))
def test_torch_paints_what_is_drawn(of: Cluster, with_clock: bool) -> None:
    view, layout = seen(of), Layout.of(of, with_clock)
    painted = paint(view, layout, torch.device("cpu"))
    assert painted.dtype == torch.float32
    assert torch.equal(painted, torch.from_numpy(draw(view, layout)))


@pytest.mark.parametrize("name", list(CONFIGS))
def test_a_network_on_a_gpu_is_the_same_function(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path by torch's operations, run on the CPU here: without oneDNN, which at times takes coarser sums."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    view, network = seen(DEEPRM, 6, 12), build(CONFIGS[name], DEEPRM, seed=3)
    ours, played = network(view), network.frozen()(view)
    found = gradients(network, ours)
    monkeypatch.setattr(Network, "by_torch", True)
    assert_close(ours, network(view))
    assert_close(torch.from_numpy(played), torch.from_numpy(network.frozen()(view)))
    for weight, gradient in gradients(network, network(view)).items():
        # Float32 sums over whole images are further than 1e-5 from exact ones; `test_cnn` holds ours to those.
        assert_close(found[weight], gradient, by=3e-4 if name == "cnn" else 1e-5)


def test_the_gradient_does_not_depend_on_how_threads_share_the_views(request: pytest.FixtureRequest) -> None:
    view = compact(many(observation(duration=[3, 0, 5]), 5))  # an odd number, for two
    network = build(Mlp(name="mlp", hidden=4, clock=False), Cluster((10, 10), 20, 3, 4, False), seed=3)
    alone = gradients(network, network(view))
    request.getfixturevalue("two_threads")
    for name, gradient in gradients(network, network(view)).items():
        assert_close(gradient, alone[name])


@pytest.mark.parametrize("name", list(CONFIGS))
class TestEveryNetwork:
    def test_is_built_here(self, name: str) -> None:
        assert CONFIGS[name].name == name

    def test_gives_a_logit_to_every_slot_and_to_void(self, name: str) -> None:
        view = seen(SMALL)
        logits = build(CONFIGS[name], SMALL, seed=1)(view)
        assert logits.shape == (len(view.cells), 4)
        assert logits.dtype == torch.float32
        assert torch.isfinite(logits).all()

    def test_sees_one_view_as_it_sees_it_among_others(self, name: str) -> None:
        view = seen(SMALL)
        network = build(CONFIGS[name], SMALL, seed=1)
        some = np.array([5, 0, 9])
        assert_close(network(view.take(some)), network(view)[some])

    def test_tells_one_view_from_another(self, name: str) -> None:
        network = build(CONFIGS[name], SMALL, seed=1)
        short, long = (compact(observation([n, 0, 0], capacity=[4, 3], horizon=8)) for n in (1, 8))
        assert not torch.equal(network(short), network(long))

    def test_learns_with_all_of_its_weights(self, name: str) -> None:
        network = build(CONFIGS[name], SMALL, seed=1)
        found = gradients(network, network(seen(SMALL)))
        assert set(found) == set(network.state_dict())
        assert all(gradient.abs().sum() > 0 for gradient in found.values())

    def test_is_the_same_from_the_same_seed(self, name: str) -> None:
        one, other = (build(CONFIGS[name], SMALL, seed=5).state_dict() for _ in range(2))
        assert all(torch.equal(one[key], other[key]) for key in one)

    def test_is_another_one_from_another_seed(self, name: str) -> None:
        one, other = (build(CONFIGS[name], SMALL, seed=seed).state_dict() for seed in (5, 6))
        assert not any(torch.equal(one[key], other[key]) for key in one)

    def test_is_built_without_touching_the_randomness_of_others(self, name: str) -> None:
        torch.manual_seed(0)
        expected = torch.rand(3)
        torch.manual_seed(0)
        build(CONFIGS[name], SMALL, seed=5)
        assert torch.equal(torch.rand(3), expected)


def test_every_network_of_the_table_has_its_config_here() -> None:
    assert {*CONFIGS, "scores"} == set(NETWORKS)  # sees no image: test_score_rule
