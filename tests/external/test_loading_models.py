"""Models in files as policies: what they are shown, and the mask that is applied to their scores."""

import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import pytest
import stable_baselines3
import torch
from builders import many, observation
from gymnasium import spaces
from onnx import TensorProto, helper

import deeprm
from pipeline.core.types import Observation, legal_actions
from pipeline.external import loading
from pipeline.external.guard import PolicyError
from pipeline.external.loading import external, inputs_of, of_file
from pipeline.simulation.features import encoded

SCALE = 5.0
VIEW = many(observation([3, 0, 2], fits_now=[False, False, True]), 3)  # of three slots the last may be started


class Shown(gymnasium.Env):  # type: ignore[type-arg]
    """Shows what our features are, at random; `flat` as one vector."""

    def __init__(self, flat: bool = False) -> None:
        shapes = {name: part.shape[1:] for name, part in encoded(VIEW, SCALE)._asdict().items()}
        parts = spaces.Dict({name: spaces.Box(0, 1, shape, np.float32) for name, shape in shapes.items()})
        self.observation_space = spaces.flatten_space(parts) if flat else parts
        self.action_space = spaces.Discrete(4)

    def reset(self, **more: Any) -> Any:
        return self.observation_space.sample(), {}

    def step(self, action: int) -> Any:
        return self.observation_space.sample(), 0.0, True, False, {}

    def action_masks(self) -> Any:
        return np.ones(4, dtype=bool)


def made(name: str, flat: bool) -> Any:
    import sb3_contrib

    policy = "MlpPolicy" if flat else "MultiInputPolicy"
    more = {"buffer_size": 10} if name in ("DQN", "QRDQN") else {}
    of = stable_baselines3 if name in ("PPO", "A2C", "DQN") else sb3_contrib
    return getattr(of, name)(policy, Shown(flat), seed=0, **more)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("name", ["PPO", "A2C", "DQN", "MaskablePPO", "QRDQN"])
def test_a_model_of_stable_baselines_takes_its_best_legal_action(tmp_path: Path, name: str, flat: bool) -> None:
    model = made(name, flat)
    model.save(tmp_path / "model.zip")
    policy = external(str(tmp_path / "model.zip"), None, SCALE)
    every = VIEW._replace(legal=np.ones_like(VIEW.legal), may_idle=np.ones(3, dtype=bool))
    shown = inputs_of(every, SCALE)
    given = shown["observation"] if flat else {part: shown[part] for part in ("jobs", "cluster", "queue")}
    expected, _ = model.predict(given, deterministic=True)  # where all is legal, its own choice
    assert np.array_equal(policy(every, np.zeros(3)), expected)
    only = VIEW._replace(may_idle=np.zeros(3, dtype=bool))
    assert legal_actions(only).tolist() == [[False, False, True, False]] * 3
    assert policy(only, np.zeros(3)).tolist() == [2, 2, 2]
    assert policy.slots == (0 if flat else 3)


def test_the_flat_observation_is_what_gymnasium_flattens() -> None:
    shown = inputs_of(VIEW, SCALE)
    parts = {name: shown[name][0] for name in ("jobs", "cluster", "queue")}
    assert np.array_equal(shown["observation"][0], spaces.flatten(Shown().observation_space, parts))


Nodes = list[onnx.NodeProto]


def written(place: Path, given: Any, back: Any, nodes: Nodes) -> Path:
    """An ONNX file of one input and one output, each (name, shape, type)."""
    infos = [helper.make_tensor_value_info(name, kind, ["B", *shape]) for name, shape, kind in (given, back)]
    whole = helper.make_graph(nodes, "g", infos[:1], infos[1:])
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.save(model, str(place / "g.onnx"))
    return place / "g.onnx"


def graph(place: Path, name: str, shape: list[Any], output: str = "logits", kind: int = TensorProto.FLOAT) -> Path:
    """An ONNX file that returns what it is given."""
    node = helper.make_node("Identity", [name], [output])
    return written(place, (name, shape, kind), (output, shape, kind), [node])


def test_an_onnx_file_is_given_what_it_asks_for_and_its_best_legal_action_is_taken(tmp_path: Path) -> None:
    policy = of_file(graph(tmp_path, "action_mask", [4]), SCALE)
    assert policy(VIEW, np.zeros(3)).tolist() == [2, 2, 2]
    waited = VIEW._replace(waited=np.array([[9, 0, 5]] * 3), legal=np.ones_like(VIEW.legal))
    with pytest.raises(Exception, match=r"its scores are of shape \(3, 3\); expected numbers of shape \(3, 4\)"):
        of_file(graph(tmp_path, "waited", ["M"]), SCALE)(waited, np.zeros(3))
    of_now = of_file(graph(tmp_path, "now", [], "action", TensorProto.INT64), SCALE)
    assert of_now(VIEW._replace(now=np.array([2, 3, 2])), np.zeros(3)).tolist() == [2, 3, 2]


def test_many_observations_are_given_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "AT_ONCE", 2)
    of_now = of_file(graph(tmp_path, "now", [], "action", TensorProto.INT64), SCALE)
    assert of_now(many(VIEW, 1)._replace(), np.zeros(1)).tolist() == [0]
    assert of_now(VIEW._replace(now=np.array([1, 2, 3])), np.zeros(3)).tolist() == [1, 2, 3]


def test_a_score_that_is_no_number_is_refused(tmp_path: Path) -> None:
    cast = helper.make_node("Cast", ["action_mask"], ["x"], to=TensorProto.FLOAT)
    nodes = [cast, helper.make_node("Sub", ["x", "x"], ["z"]), helper.make_node("Div", ["z", "z"], ["logits"])]
    file = written(tmp_path, ("action_mask", [4], TensorProto.BOOL), ("logits", [4], TensorProto.FLOAT), nodes)
    with pytest.raises(PolicyError, match="its scores are not finite"):
        external(str(file), None, SCALE)(VIEW, np.zeros(3))


@pytest.mark.parametrize(
    ("name", "shape", "why"),
    [
        ("pixels", [4], "it asks for 'pixels'; there are: action_mask, arrived, "),
        ("jobs", [5, 8], r"its jobs has shape \(5, 8\); in this scenario it has \(3, 8\)"),
    ],
)
def test_an_input_that_there_is_not_is_told(tmp_path: Path, name: str, shape: list[int], why: str) -> None:
    with pytest.raises(PolicyError, match=why):
        external(str(graph(tmp_path, name, shape)), None, SCALE)(VIEW, np.zeros(3))


def test_what_is_no_model_and_a_package_that_is_missing_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.zip").write_text("no")
    (tmp_path / "x.onnx").write_text("no")
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as packed:
        packed.writestr("data", '{"policy_class": {"__module__": "os"}}')
    for name, why in (("x.zip", "no model of"), ("x.onnx", "cannot be loaded"), ("y.zip", "found a policy of os")):
        with pytest.raises(PolicyError, match=why) as caught:
            external(str(tmp_path / name), None, SCALE)
        assert "\n" not in str(caught.value)

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(loading.importlib, "import_module", missing)
    with pytest.raises(PolicyError, match=r"needs onnxruntime: pip install 'deeprm-pipeline\[onnx\]'"):
        external(str(tmp_path / "x.onnx"), None, SCALE)


def test_features_are_those_of_the_environments() -> None:
    shown, features = inputs_of(VIEW, SCALE), encoded(VIEW, SCALE)
    for name in features._fields:
        assert np.array_equal(shown[name], getattr(features, name))
    assert isinstance(Observation._make(shown[name] for name in Observation._fields), Observation)
    assert torch.get_num_threads() >= 1


@pytest.mark.parametrize(
    ("jobs", "queue", "slots"), [((80,), (9,), 10), ((10, 8), (9,), 10), (("M", 8), (9,), 0), ((), (9,), 0)]
)
def test_a_model_says_how_many_slots_it_sees(jobs: Any, queue: Any, slots: int) -> None:
    wanted = {"jobs": jobs, "queue": queue} if jobs else {"queue": queue}
    assert loading.Model(lambda given: given, wanted, SCALE).slots == slots


def test_a_model_may_see_the_image_of_the_environment() -> None:
    env = deeprm.make("deeprm/Pool-v0", obs="image", load=190).unwrapped
    seen, _ = env.reset(seed=1)
    view = env.episodes.simulator.observe(env.episodes.rows)
    drawn = inputs_of(view, SCALE, ["image"], env.episodes.game.row.backlog)["image"]
    assert np.array_equal(drawn[0], seen["image"])
    assert 0 < seen["image"].mean() < 255
