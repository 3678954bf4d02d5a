"""Loading of external policies: package.module:name, path/to/file.py:name, a .zip or an .onnx file.

Models in files are those of Stable-Baselines3, loaded by pickle, and ONNX. Both see the features of
`simulation.features` and take the best legal action: the mask is applied here, so that models trained without one work
too.
"""

import importlib
import json
import sys
import zipfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pipeline.core.config.evaluation import FILES, WORD, place_of
from pipeline.core.types import FloatArray, IntArray, Observation, legal_actions
from pipeline.errors import UserError
from pipeline.external.guard import LIMIT_MS, Decide, Guard, PolicyError, error_line
from pipeline.simulation.features import JOB, QUEUE, encoded, image

ALGORITHMS = {  # package and class, by the module of the model's policy; longer names first
    "sb3_contrib.common.maskable": ("sb3_contrib", "MaskablePPO"),
    "sb3_contrib.qrdqn": ("sb3_contrib", "QRDQN"),
    "stable_baselines3.dqn": ("stable_baselines3", "DQN"),
    "stable_baselines3.common": ("stable_baselines3", "PPO"),  # and A2C, which acts in the same way
}
AT_ONCE = 512  # observations of one batch: with images, 80 MB per layer
TYPES = {"float": "f4", "double": "f8", "int64": "i8", "int32": "i4", "int8": "i1", "uint8": "u1", "bool": "?"}


def is_external(word: str) -> bool:
    """Return whether a word names an external policy.

    >>> [is_external(word) for word in ("mine.policies:choose", "a/b.py:choose", "ppo.zip", "sjf", "models/deeprm")]
    [True, True, True, False, False]
    """
    return WORD.fullmatch(word) is not None and not Path(word).is_dir()


def external(
    word: str, row: Any, scale: float | None = None, limit_ms: float = LIMIT_MS, file: Path | None = None
) -> Guard:
    """Return an external policy under guard; PolicyError if it cannot be loaded, or does not fit the problem.

    Paths in the word are relative to the working directory; `file`, if given, is read in place of the named file. `row`
    is the scenario; None: one of the benchmark. `scale` is the time that features map to one half; None: a quarter of
    the horizon.
    """
    place, orders = place_of(word), len(getattr(row, "orders", ()))
    try:
        if place.startswith("plan_") and not Path(place).exists():
            raise PolicyError(word, "policies that were made elsewhere do not look ahead: leave 'plan_' out")
        if not place.endswith(FILES):
            _look_in(Path.cwd())
            return Guard(word, _callable(importlib.import_module(place), word), limit_ms, orders)
        file = (file or Path(place)).resolve()
        if not file.is_file():
            raise PolicyError(word, f"no such file: {file}")
        if place.endswith(".py"):
            return Guard(word, _callable(_run(file), word), limit_ms, orders)
        if orders:
            raise PolicyError(word, "scenarios of groups take a Python callable only")
        unit = row.horizon / 4 if scale is None else scale
        return Guard(word, of_file(file, unit, getattr(row, "backlog", 0)), limit_ms)
    except PolicyError:
        raise
    except UserError as error:
        raise PolicyError(word, str(error)) from error
    except (Exception, SystemExit) as error:
        raise PolicyError(word, f"cannot be loaded ({error_line(error)})") from error


def _callable(module: ModuleType, word: str) -> Decide:
    name = word.rpartition(":")[2]
    found = getattr(module, name, None)
    if isinstance(found, type):  # made once: it may read weights
        found = found()
    if not callable(found):
        raise PolicyError(word, f"there is no callable '{name}'")
    decide: Decide = found
    return decide


def _run(file: Path) -> ModuleType:
    _look_in(file.parent)  # what it imports may be next to it
    spec = spec_from_file_location(f"external_{file.stem}", file)
    assert spec is not None  # it is a file that ends in .py
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles look for it there
    spec.loader.exec_module(module)
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def of_file(file: Path, scale: float, backlog: int = 0) -> Decide:
    """Return a model's policy; `scale`: time that features map to one half; `backlog`: size of the image's backlog.

    Raises UserError: it is not such a model, or a package is missing.
    """
    return _sb3(file, scale, backlog) if file.suffix == ".zip" else _onnx(file, scale, backlog)


def of_sb3(model: Any, scale: float, backlog: int = 0) -> Decide:
    """Return the policy of a model of Stable-Baselines3 that is in memory; see `of_file`."""
    parts = getattr(model.observation_space, "spaces", {"observation": model.observation_space})
    if "observation" in parts and len(parts["observation"].shape) > 1:
        parts = {"image": parts["observation"]}
    return Model(
        lambda given: _scores(model, given), {name: part.shape for name, part in parts.items()}, scale, backlog
    )


def inputs_of(view: Observation, scale: float, wanted: Collection[str] = (), backlog: int = 0) -> dict[str, Any]:
    """Return all possible inputs of a model by name: features, combined or separate, mask, raw fields, image."""
    features = encoded(view, scale)._asdict()
    flat = np.concatenate([features[name].reshape(len(view.now), -1) for name in sorted(features)], axis=1)
    drawn = {"image": image(view, backlog)} if "image" in wanted else {}
    return {**view._asdict(), **features, "observation": flat, "action_mask": legal_actions(view), **drawn}


def best_legal(scores: FloatArray, view: Observation) -> IntArray:
    """Return the legal action [B] of the highest score [B, A], the first of equals; UserError for invalid scores."""
    legal = legal_actions(view)
    if scores.shape != legal.shape or not np.isfinite(scores[legal]).all():
        found = "not finite" if scores.shape == legal.shape else f"of shape {scores.shape}"
        raise UserError(f"its scores are {found}; expected numbers of shape {legal.shape}")
    return np.asarray(np.where(legal, scores, -np.inf).argmax(axis=1))


@dataclass(frozen=True)
class Model:
    """A model as a policy: the best of the legal actions by its scores."""

    scores: Callable[[Mapping[str, Any]], Any]  # inputs by name -> scores [B, A], or actions [B]
    wanted: Mapping[str, tuple[Any, ...]]  # shape of each input, without B
    scale: float
    backlog: int = 0  # jobs that the backlog of the image can show

    @property
    def slots(self) -> int:
        """Number of waiting jobs that the model must see; 0: any."""
        shape, queue = self.wanted.get("jobs", ()), self.wanted.get("queue", (0,))[0]
        if not shape or not isinstance(shape[0], int):
            return 0
        return shape[0] if len(shape) > 1 else shape[0] // (JOB + max(1, queue - QUEUE))

    def __call__(self, view: Observation, draws: FloatArray) -> IntArray:
        """Return the best legal actions [B]."""
        parts = range(0, len(draws), AT_ONCE)
        return np.concatenate([self._some(view.take(slice(k, k + AT_ONCE))) for k in parts])

    def _some(self, view: Observation) -> IntArray:
        given = inputs_of(view, self.scale, self.wanted, self.backlog)
        found = self.scores(_fitting(given, self.wanted))
        return np.asarray(found) if found.ndim == 1 else best_legal(found, view)


def _sb3(file: Path, scale: float, backlog: int) -> Decide:
    try:
        data = json.loads(zipfile.ZipFile(file).read("data"))
        made_in = str(data["policy_class"]["__module__"])
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise UserError(f"no model of Stable-Baselines3 ({error})") from error
    known = next((known for start, known in ALGORITHMS.items() if made_in.startswith(start)), None)
    if known is None:
        raise UserError(f"expected a model of PPO, A2C, DQN, MaskablePPO or QRDQN, found a policy of {made_in}")
    return of_sb3(getattr(_installed(known[0]), known[1]).load(file, device="cpu"), scale, backlog)


def _scores(model: Any, given: Mapping[str, Any]) -> FloatArray:
    """Return logits or values [B, A] of a model of Stable-Baselines3."""
    import torch

    policy = model.policy
    tensors, _ = policy.obs_to_tensor(given if len(given) > 1 else next(iter(given.values())))
    with torch.no_grad():
        if hasattr(policy, "get_distribution"):
            found = policy.get_distribution(tensors).distribution.logits
        elif hasattr(policy, "quantile_net"):
            found = policy.quantile_net(tensors).mean(dim=1)
        else:
            found = policy.q_net(tensors)
    return np.asarray(found.numpy(), dtype=np.float64)


def _onnx(file: Path, scale: float, backlog: int) -> Decide:
    runtime = _installed("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # sums are always taken in the same order
    session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    wanted = {one.name: tuple(one.shape[1:]) for one in session.get_inputs()}
    types = {one.name: TYPES.get(one.type[7:-1], "f4") for one in session.get_inputs()}  # tensor(float)
    outputs = [one.name for one in session.get_outputs()]
    output = next((name for name in ("action", "logits") if name in outputs), outputs[0])

    def scores(given: Mapping[str, Any]) -> FloatArray:
        feed = {name: np.ascontiguousarray(value, dtype=types[name]) for name, value in given.items()}
        return np.asarray(session.run([output], feed)[0])

    return Model(scores, wanted, scale, backlog)


def _fitting(given: Mapping[str, Any], wanted: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Return the inputs that a model wants, or raise a UserError for one that does not exist or has another shape.

    Symbolic sizes of a shape match any, and `jobs` may be one vector.
    """
    for name, shape in wanted.items():
        if name not in given:
            raise UserError(f"it asks for '{name}'; there are: {', '.join(sorted(given))}")
        found = given[name].shape[1:]
        flat = len(shape) == 1 and shape[0] == np.prod(found)
        same = len(found) == len(shape) and all(
            n == m or not isinstance(n, int) for n, m in zip(shape, found, strict=True)
        )
        if not flat and not same:
            raise UserError(f"its {name} has shape {shape}; in this scenario it has {found}")
    return {
        name: given[name].reshape(len(given[name]), -1) if len(shape) == 1 else given[name]
        for name, shape in wanted.items()
    }


def _installed(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        extra = "onnx" if package == "onnxruntime" else "sb3"
        raise UserError(f"needs {error.name}: pip install 'deeprm-pipeline[{extra}]'") from error
