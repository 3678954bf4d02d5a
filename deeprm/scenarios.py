"""The scenarios of the environments: each id's own, one of params.yaml, or either with changes."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pipeline.core.config import PARAMS_FILE, Params, check_params, known_names
from pipeline.core.config.parsing import parsed
from pipeline.errors import UserError

# Environments by id, with the scenario of `deeprm/scenarios.yaml` that each uses by default.
IDS = {
    "deeprm/Pool-v0": "online",
    "deeprm/Stream-v1": "streams",
    "deeprm/Offline-v0": "offline",
    "deeprm/Machines-v0": "machines",
    "deeprm/Groups-v0": "shares",
    "deeprm/RLScheduler-v0": "rlscheduler",
}
PEER = "rlscheduler"  # no scenario of params.yaml: the machine is the log's own
Scenario = str | Mapping[str, Any]  # a scenario's name, or changed keys of one


def settings(
    own: str,
    scenario: Scenario | None = None,
    jobs: str | Path | None = None,
    slots: int | None = None,
    policies_know: str | None = None,
) -> tuple[Params, str]:
    """Return all parameters, and the name of an environment's scenario; see `deeprm.env.Settings`.

    >>> params, name = settings("online", {"step_limit": 500}, slots=5)
    >>> name, params.scenario(name).slots, params.scenario(name).step_limit
    ('online', 5, 500)

    Raises:
        UserError: there is no such scenario, or a key or value is wrong.
    """
    if isinstance(scenario, str) and PARAMS_FILE.is_file():
        text, where = PARAMS_FILE.read_text(encoding="utf-8"), str(PARAMS_FILE)
    else:
        text, where = (files("deeprm") / "scenarios.yaml").read_text(encoding="utf-8"), "deeprm/scenarios.yaml"
    raw = dict(parsed(text, where))
    name = scenario if isinstance(scenario, str) else own
    rows = raw["scenarios"]
    if name not in rows:
        raise UserError(f"{where}: no scenario '{name}'; {known_names(rows, name)}")
    changes = {"slots": slots, "policies_know": policies_know}
    row = dict(rows[name]) | {key: value for key, value in changes.items() if value is not None}
    row |= scenario if isinstance(scenario, Mapping) else {}
    if jobs is not None:
        from pipeline.core.logs.registry import guess

        log = {"name": "log", "format": guess(Path(jobs)), "path": str(jobs)}
        place = raw if row["problem"] == "pool" else row
        given = place["workload"] if place.get("workload", {}).get("name") == "log" else {}
        place["workload"] = {**given, **log}
    raw["scenarios"] = {**rows, name: row}
    return check_params(raw, where), str(name)
