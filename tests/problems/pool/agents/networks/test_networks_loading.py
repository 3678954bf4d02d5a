"""A stored network acts as it did before it was stored; anything else is refused with a one-line error."""

import hashlib
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from builders import viewed, wander
from safetensors.numpy import save

from pipeline.core.config import Cnn, Mlp, Params, PoolCard, PoolScenario
from pipeline.core.storage import Model, read_model, write_model
from pipeline.errors import UserError
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.network import PLAY
from pipeline.problems.pool.agents.networks.networks import build, card_of, cluster_of, must_match, restore
from pipeline.problems.pool.env.nouns import Cluster

OF = Cluster((4, 3), 8, 3, 5, True)


def card(**settings: object) -> PoolCard:
    """A small network's card."""
    own: dict[str, object] = {
        "agent": "small",
        "scenario": "online",
        "resources": {"cpu": 4, "memory": 3},
        "horizon": 8,
        "slots": 3,
        "backlog": 5,
        "place_ahead": True,
        "objective": "slowdown",
        "network": {"name": "mlp", "hidden": 4, "clock": True},
        "masked": True,
        "play": "greedy",
    }
    return PoolCard.model_validate(own | settings)


def model(**settings: object) -> Model:
    """A small model of weights that nobody trained."""
    of = card(**settings)
    return Model(of, weights_of(build(of.network, OF, seed=9)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stored model's directory."""
    write_model(tmp_path / "model", model())
    return tmp_path / "model"


def refusal(do: Callable[[], object]) -> str:
    """What the user is told, on one line."""
    with pytest.raises(UserError) as told:
        do()
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("play", ["greedy", "sampled"])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(
    "network",
    [{"name": "mlp", "hidden": 4, "clock": False}, {"name": "cnn", "channels": [2, 3], "hidden": 5, "clock": True}],
)
def test_a_stored_network_acts_as_before(tmp_path: Path, network: object, masked: bool, play: str) -> None:
    own = card(network=network, masked=masked, play=play)
    trained = build(own.network, OF, seed=9)
    write_model(tmp_path, Model(own, weights_of(trained)))
    stored = read_model(tmp_path, PoolCard)
    loaded = restore(stored.card, stored.weights)
    assert stored.card == own
    assert (loaded.cluster, loaded.masked) == (OF, masked)
    view = viewed(OF, wander)
    draws = np.random.default_rng(0).random(len(view.now))
    expected = PLAY[play](trained, masked)(view, draws)
    assert loaded.policy(view, draws).tolist() == expected.tolist()
    assert len(set(expected.tolist())) > 1


def test_the_same_model_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_model(tmp_path / name, model())
    for file in ("policy.json", "policy.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_an_agents_directory_stands_for_the_policy_in_it(tmp_path: Path) -> None:
    write_model(tmp_path / "policy", model())
    assert read_model(tmp_path, PoolCard).card == card()


def test_a_stored_model_does_not_change_with_the_network_it_was_read_into(folder: Path) -> None:
    stored = read_model(folder, PoolCard)
    before = stored.weights["last.bias"].copy()
    network = restore(stored.card, stored.weights).network
    torch.nn.init.zeros_(network.get_parameter("last.bias"))
    assert np.array_equal(stored.weights["last.bias"], before)


def without(weights: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    return {key: value for key, value in weights.items() if key != name}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda own: own | {"last.bias": np.zeros(9, np.float32)}, "last.bias: expected 4 float32, found 9 float32"),
        (lambda own: own | {"last.bias": own["last.bias"][None]}, "last.bias: expected 4 float32, found 1 x 4 float32"),
        (lambda own: own | {"last.bias": np.float32([1])[0]}, "last.bias: expected 4 float32, found one float32"),
        (lambda own: own | {"last.bias": np.zeros(4)}, "last.bias: expected 4 float32, found 4 float64"),
        (lambda own: own | {"last.bias": np.zeros(4, np.int8)}, "last.bias: expected 4 float32, found 4 int8"),
        (lambda own: own | {"extra": np.zeros(3, np.float32)}, "extra: expected none, found 3 float32"),
        (lambda own: without(own, "last.bias"), "last.bias: expected 4 float32, found none"),
        (lambda own: {}, "first.bias: expected 4 float32, found none"),
    ],
    ids=["size", "rank", "scalar", "double", "whole", "extra", "missing", "empty"],
)
def test_other_weights_than_the_networks_are_refused(
    folder: Path, change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]], said: str
) -> None:
    stored = model()
    wrong = change(stored.weights)
    assert refusal(lambda: restore(stored.card, wrong)) == f"model of agent 'small': tensor {said}"
    # The same on disk, where the card tells.
    weights = folder / "policy.safetensors"
    weights.write_bytes(save({name: np.array(value) for name, value in wrong.items()}))
    assert refusal(lambda: read_model(folder, PoolCard)) == f"{weights}: not the weights of policy.json: tensor {said}"


def test_weights_of_another_network_are_refused() -> None:
    stored = model(network={"name": "cnn", "channels": [2, 3], "hidden": 5, "clock": True})
    assert "tensor first.bias: expected 4 float32, found 2 float32" in refusal(lambda: restore(card(), stored.weights))


def test_weights_of_another_training_are_refused(folder: Path, tmp_path: Path) -> None:
    """As a kill between the two files of a model would leave them."""
    other = model()
    other.weights["last.bias"] += 1
    write_model(tmp_path / "other", other)
    file = folder / "policy.safetensors"
    shutil.copy(tmp_path / "other" / file.name, file)
    digests = [hashlib.sha256(save(stored.weights)).hexdigest()[:12] for stored in (model(), other)]
    told = "{}: not the weights of policy.json: expected sha256 {}..., found {}..."
    assert refusal(lambda: read_model(folder, PoolCard)) == told.format(file, *digests)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_neither_written_nor_read(folder: Path, tmp_path: Path, number: float) -> None:
    wrong = model()
    wrong.weights["last.bias"][2] = number
    told = refusal(lambda: write_model(tmp_path / "astray", wrong))
    said = f"tensor last.bias: expected finite numbers, found {number}"
    assert told == f"{tmp_path / 'astray'}: not written: {said}; training went astray: try a lower learning_rate"
    assert not (tmp_path / "astray").exists()
    file = folder / "policy.safetensors"
    file.write_bytes(save(wrong.weights))
    assert refusal(lambda: read_model(folder, PoolCard)) == f"{file}: {said}"


class Trap:
    """What a pickle may do when it is loaded."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path("sprung").write_text, ("sprung",)


@pytest.mark.parametrize("protocol", [2, 5])
def test_a_pickle_is_never_loaded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    monkeypatch.chdir(tmp_path)
    file = folder / "policy.safetensors"
    file.write_bytes(pickle.dumps(Trap(), protocol))
    said = f"{file}: not safetensors: this looks like a pickle, and pickles are never loaded"
    assert refusal(lambda: read_model(folder, PoolCard)) == said
    torch.save({"last.bias": torch.zeros(3)}, file)
    assert refusal(lambda: read_model(folder, PoolCard)) == said
    assert not Path("sprung").exists()
    pickle.loads(pickle.dumps(Trap(), protocol))  # the trap does work
    assert Path("sprung").exists()


def test_a_tensor_of_a_type_that_is_not_known_is_refused(folder: Path) -> None:
    header = json.dumps({"last.bias": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    file = folder / "policy.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    assert refusal(lambda: read_model(folder, PoolCard)) == f"{file}: not weights (a tensor of type BF16)"


def test_the_card_says_what_the_weights_are(folder: Path) -> None:
    said = json.loads((folder / "policy.json").read_text())["weights"]
    assert said["sha256"] == hashlib.sha256((folder / "policy.safetensors").read_bytes()).hexdigest()
    assert said["tensors"]["last.weight"] == {"shape": [4, 4], "dtype": "float32"}  # 4 hidden units, 3 slots and void
    assert set(said["packages"]) == {"torch", "numpy", "numba", "safetensors"}
    assert not [number for number in said["packages"].values() if "+" in number]


@pytest.mark.parametrize("junk", [b"", b"junk", b"\xff" * 64, b'{"a": 1}'])
def test_junk_for_weights_is_refused(folder: Path, junk: bytes) -> None:
    (folder / "policy.safetensors").write_bytes(junk)
    assert refusal(lambda: read_model(folder, PoolCard)).startswith(f"{folder / 'policy.safetensors'}: not weights")


def test_weights_cut_short_are_refused(folder: Path) -> None:
    file = folder / "policy.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    assert "not weights" in refusal(lambda: read_model(folder, PoolCard))


@pytest.mark.parametrize("junk", [b"", b"junk", b"\xff\xfe", b"[]", b"{}", b'{"format": 2}', b"[" * 100_000])
def test_a_junk_card_is_refused(folder: Path, junk: bytes) -> None:
    (folder / "policy.json").write_bytes(junk)
    assert refusal(lambda: read_model(folder, PoolCard)).startswith(f"{folder / 'policy.json'}: not a model card")


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", 1), ("format", "two"), ("slots", 0), ("play", "boldly"), ("objective", None), ("hue", 1)],
)
def test_a_card_with_a_wrong_entry_is_refused(folder: Path, key: str, value: object) -> None:
    own = json.loads((folder / "policy.json").read_text()) | {key: value}
    (folder / "policy.json").write_text(json.dumps(own))
    assert key in refusal(lambda: read_model(folder, PoolCard))


def test_a_card_of_another_format_is_refused(folder: Path) -> None:
    file = folder / "policy.json"
    file.write_text('{"format": 3, "future": true}')
    assert refusal(lambda: read_model(folder, PoolCard)) == (
        f"{file}: expected a card of format 2, found format 3: make the model again"
    )


def test_a_card_that_does_not_describe_the_weights_is_refused(folder: Path) -> None:
    file = folder / "policy.json"
    file.write_text(card().model_dump_json())
    assert (
        refusal(lambda: read_model(folder, PoolCard)) == f"{file}: not a model card (it does not describe the weights)"
    )


@pytest.mark.parametrize("missing", ["policy.json", "policy.safetensors"])
def test_a_directory_without_one_of_the_files_is_no_model(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    assert refusal(lambda: read_model(folder, PoolCard)).startswith(f"{folder}: not a model directory")


def test_a_file_or_nothing_is_no_model(folder: Path) -> None:
    assert "not a model directory" in refusal(lambda: read_model(folder / "policy.json", PoolCard))
    assert "not a model directory" in refusal(lambda: read_model(folder / "nowhere", PoolCard))


def scenario(params: Params, **settings: object) -> PoolScenario:
    """The scenario of the small model's card."""
    own = {name: getattr(card(), name) for name in ("resources", "horizon", "slots", "backlog", "place_ahead")}
    return params.pool_scenario("online").model_copy(update={**own, **settings})


def test_a_network_is_played_where_it_was_trained(params: Params) -> None:
    must_match(card(), scenario(params))
    must_match(card(), scenario(params, place_ahead="agents"))
    assert cluster_of(card()) == Cluster.of(scenario(params))._replace(arrivals_end=None, stall=None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("resources", {"cpu": 4, "memory": 4}),
        ("resources", {"cpu": 4}),
        ("resources", {"memory": 3, "cpu": 4}),
        ("horizon", 9),
        ("slots", 4),
        ("backlog", 0),
        ("place_ahead", False),
    ],
)
def test_a_network_is_refused_on_another_cluster(params: Params, name: str, value: object) -> None:
    told = refusal(lambda: must_match(card(), scenario(params, **{name: value})))
    assert told == f"model of agent 'small': trained with {name} {getattr(card(), name)}, the scenario has {value}"


@pytest.mark.parametrize("agent", ["deeprm", "deeprm2", "deeprm_off"])
def test_the_card_of_an_agent_says_all_that_rebuilds_it(params: Params, agent: str) -> None:
    own = card_of(params, agent)
    row = params.agent(agent)
    assert (own.agent, own.scenario, own.network) == (agent, row.scenario, row.network)
    assert cluster_of(own) == Cluster.of(params.pool_scenario(row.scenario))._replace(arrivals_end=None)
    assert (own.masked, own.play) == (params.pool_recipe(agent).masked, params.pool_recipe(agent).play)
    assert isinstance(own.network, Mlp | Cnn)
