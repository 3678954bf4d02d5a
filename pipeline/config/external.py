"""A policy that was made elsewhere, as a row of `policies`."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.config.records import Frozen, Name, check_known
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config.params import Params

NAME = r"[A-Za-z_]\w*"
WORD = re.compile(rf"({NAME}(\.{NAME})*|.+\.py):{NAME}|.+\.(zip|onnx)")
EXPECTED = "expected package.module:name, path/to/file.py:name, a .zip of Stable-Baselines3 or an .onnx file"


MODELS = (".zip", ".onnx")
FILES = (".py", *MODELS)


def place_of(word: str) -> str:
    """Return the module or file of an external policy's word.

    >>> place_of("mine.policies:choose"), place_of("a/b.py:choose"), place_of("a:b.zip")
    ('mine.policies', 'a/b.py', 'a:b.zip')
    """
    return word if word.endswith(MODELS) else word.rpartition(":")[0]


def _word(value: str) -> str:
    if not WORD.fullmatch(value):
        raise ValueError(f"{EXPECTED}, got {value!r}")
    return value


class External(Frozen):
    """A policy that was made elsewhere, scored on a scenario's test jobsets."""

    problem: Literal["pool", "machines", "groups"]  # the scenario's
    scenario: Name  # whose test jobsets it plays
    # package.module:name or path/to/file.py:name of a callable, a .zip of Stable-Baselines3 or an .onnx file.
    policy: Annotated[str, AfterValidator(_word)]
    files: tuple[str, ...] = ()  # others that it reads, as weights: a change of one makes its results stale
    objective: Literal["slowdown", "delay"]  # what it is judged by; without it delay for groups, else slowdown
    limit_ms: Annotated[float, Field(gt=0)] = 10.0  # that a decision may take, the mean over all of a batch

    @model_validator(mode="before")
    @classmethod
    def _judged(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        return {"objective": "delay" if raw.get("problem") == "groups" else "slowdown", **raw}


def check_policies(params: "Params", where: str) -> None:
    """Refuse an external policy with another one's name, or whose scenario is not there or of another problem.

    Raises:
        UserError: one line for the first such row.
    """
    for name, row in params.policies.items():
        place = f"{where}: policies.{name}"
        check_known(where, f"policies.{name}.scenario", row.scenario, params.scenarios)
        if row.problem != (of := params.scenarios[row.scenario].problem):
            raise UserError(f"{place}.problem: expected {of}, as of scenario '{row.scenario}', got '{row.problem}'")
        if name in params.agents or name in params.plans:
            raise UserError(f"{place}: '{name}' is the name of another policy; choose another")
