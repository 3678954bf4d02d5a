"""Smoke-test parameters: the least work that takes the same paths through the code, to have it compiled."""

from collections.abc import Mapping
from typing import Any

from pipeline.config.params import Params

AT_MOST: Mapping[str, float] = {
    "train": 8,
    "validation": 16,  # some networks decide for 64 and more episodes by other code
    "test": 2,
    "jobsets": 8,
    "epochs": 1,
    "updates": 1,
    "episodes": 2,
    "windows": 2,
    "latest": 20,
    "examined": 100,
    "population": 4,
    "elite": 2,
    "rounds": 1,
    "limit": 0.001,
    "futures": 2,
    "decisions": 100,
}


def smoke_test_params(params: Params) -> Params:
    """Return these parameters with as little to do as there can be, on one thread.

    Scenarios, networks and algorithms stay as they are: code is compiled for their types.
    """
    raw = params.model_dump()
    for row in raw["scenarios"].values():
        row["jobsets"] = _capped(row["jobsets"])
    raw |= {name: _capped(raw.get(name, {})) for name in ("agents", "heuristics", "hindsight", "plans")}
    return Params.model_validate(raw | {"threads": 1})


def _capped(value: Any) -> Any:
    """Return a part of the parameters, with no number above the one that `AT_MOST` has for its name."""
    if not isinstance(value, dict):
        return value
    return {
        name: min(one, AT_MOST[name]) if name in AT_MOST and isinstance(one, int | float) else _capped(one)
        for name, one in value.items()
    }
