"""What an output came from, of params.yaml: it lies beside it, so that who depends on the one depends on the other."""

import json

from pipeline.config import Params, PoolScenario
from pipeline.core import Json
from pipeline.storage.digests import sha256_of
from pipeline.storage.files import write
from pipeline.storage.paths import LOG, REPORTS, jobsets_folder, scenario_log

ORIGIN = "origin.json"  # beside a scenario's jobsets
COMPARED = REPORTS / "compared.json"
SECTIONS = ("seed", "workload", "evaluation", "scenarios", "agents", "transfers", "plans", "policies")


def write_origin(params: Params, scenario: str) -> None:
    """Write the rows of params.yaml and the digest of the log that a scenario's jobsets come from.

    Later stages list the jobsets in place of these: when a row changes, `generate` runs, and all that plays or learns
    from the jobsets if they or this record are other ones then.
    """
    whole, row = params.model_dump(mode="json"), params.scenario(scenario)
    found = {"seed": whole["seed"], "scenario": whole["scenarios"][scenario]}
    logs = [scenario_log(scenario)]
    if isinstance(row, PoolScenario):
        found |= {"workload": params.workload_of(row).model_dump(mode="json"), "demand": whole["demands"][row.demand]}
        logs.append(LOG)
    found["logs"] = {path.as_posix(): sha256_of(path) for path in logs if path.exists()}
    write(jobsets_folder(scenario) / ORIGIN, _text(found))


def write_compared(params: Params) -> None:
    """Write the rows of params.yaml that say what was compared: those of the scenarios, agents, transfers and plans."""
    whole = params.model_dump(mode="json")
    write(COMPARED, _text({name: whole.get(name) for name in SECTIONS if name in whole or name != "policies"}))


def _text(values: Json) -> bytes:
    return (json.dumps(values, indent=2) + "\n").encode()
