"""Loading of external policies: package.module:name, path/to/file.py:name, a .zip or an .onnx file."""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.core.config.evaluation import FILES, WORD, place_of
from pipeline.errors import UserError
from pipeline.external.guard import LIMIT_MS, Decide, Guard, PolicyError, error_line


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
            return Guard(word, _callable(_imported(place), word), limit_ms, orders)
        file = (file or Path(place)).resolve()
        if not file.is_file():
            raise PolicyError(word, f"no such file: {file}")
        if place.endswith(".py"):
            return Guard(word, _callable(_run(file), word), limit_ms, orders)
        if orders:
            raise PolicyError(word, "scenarios of groups take a Python callable only")
        from pipeline.external.models import of_file  # torch or onnxruntime: only where such a model is used

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


def _imported(module: str) -> ModuleType:
    _look_in(Path.cwd())
    return importlib.import_module(module)


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
