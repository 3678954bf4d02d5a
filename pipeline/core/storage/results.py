"""Results of policies: tables, tuned heuristics, learning curves, figures, failures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field, ValidationError

from pipeline.core.config import Frozen, Params
from pipeline.core.config.parsing import read_text
from pipeline.core.schemas import ResultTables, empty
from pipeline.core.schemas.tables import CURVE
from pipeline.core.storage.files import Filter, missing, one_line, read_json, read_table, write, write_json, write_table
from pipeline.core.storage.paths import REPORTS, curve_file, results_folder
from pipeline.errors import UserError
from pipeline.progress import say

FAILED = "failed.txt"  # one line in place of the results of an external policy


def write_results(
    folder: Path,
    jobs: Sequence[pd.DataFrame],
    jobsets: Sequence[pd.DataFrame],
    tables: ResultTables,
    also: Mapping[str, pd.DataFrame] = {},
) -> None:
    """Write the results of every job and jobset under some policies."""
    write_table(folder / "jobs.parquet", pd.concat(jobs, ignore_index=True), tables.jobs)
    write_table(folder / "jobsets.parquet", pd.concat(jobsets, ignore_index=True), tables.jobsets)
    for name, frame in also.items():
        write_table(folder / f"{name}.parquet", frame, tables.also[name])


def read_jobset_results(params: Params, scenario: str, tables: ResultTables) -> pd.DataFrame:
    """Read the jobset results of every policy of a scenario: heuristics, agents, transfers, plans, external ones."""
    schema = tables.jobsets
    frames = [read_table(folder / "jobsets.parquet", schema) for folder in _folders(params, scenario)]
    return pd.concat(frames, ignore_index=True)


def read_job_results(
    params: Params, scenario: str, tables: ResultTables, policies: Sequence[str], loads: Sequence[int]
) -> pd.DataFrame:
    """Read the results of every job of a scenario under some policies at some loads, and no other rows."""
    wanted: list[Filter] = [("policy", "in", list(policies)), ("load", "in", list(loads))]
    schema = tables.jobs
    frames = [read_table(folder / "jobs.parquet", schema, wanted) for folder in _folders(params, scenario)]
    return pd.concat(frames, ignore_index=True)


def read_also(params: Params, scenario: str, tables: ResultTables, name: str) -> pd.DataFrame:
    """Read one of a problem's own tables, for every policy that has it."""
    schema = tables.also[name]
    files = [folder / f"{name}.parquet" for folder in _folders(params, scenario)]
    frames = [read_table(file, schema) for file in files if file.exists()]
    return pd.concat(frames, ignore_index=True) if frames else empty(schema)


def _folders(params: Params, scenario: str) -> list[Path]:
    found = [results_folder("heuristics", scenario)]
    for kind, rows in (("agents", params.agents), ("transfers", params.transfers), ("plans", params.plans)):
        found += [results_folder(kind, name) for name, row in rows.items() if row.scenario == scenario]
    return found + [results_folder("policies", name) for name in scored(params, scenario) if name in params.policies]


class Chosen(Frozen):
    """Choice of heuristics and their knobs by validation jobsets of a scenario."""

    knobs: dict[str, float]  # by heuristic, if it has one
    best: dict[int, str]  # load -> heuristic
    single: bool = False  # is `best` the same for all loads, because policies do not know the load?
    best_delay: dict[int, str] = Field(default_factory=dict)  # the same by mean waiting time, in continuous time
    validation: dict[str, dict[int, float]]  # heuristic -> load -> mean slowdown

    def over(self, loads: Sequence[int]) -> dict[str, float]:
        """Return each heuristic's mean over the scored ones of the loads; over all if none was scored (a log)."""
        scored = [load for load in loads if load in self.best] or list(self.best)
        return {name: float(np.mean([row[load] for load in scored])) for name, row in self.validation.items()}


def write_chosen(scenario: str, chosen: Chosen) -> None:
    """Write the choice of validation jobsets."""
    write_json(results_folder("heuristics", scenario) / "chosen.json", chosen.model_dump(exclude_defaults=True))


def read_chosen(scenario: str) -> Chosen:
    """Read the choice of validation jobsets; a UserError if the file is missing or invalid."""
    path = results_folder("heuristics", scenario) / "chosen.json"
    try:
        return Chosen.model_validate(read_json(path))
    except ValidationError as error:
        raise UserError(f"{path}: not what validation chose ({one_line(error)}): run 'dvc repro'") from error


def knobs_for(name: str, scenario: str) -> dict[str, float]:
    """Return the tuned knobs of a scenario's heuristics; none, with a message about `name`, if they are not tuned."""
    if (results_folder("heuristics", scenario) / "chosen.json").exists():
        return read_chosen(scenario).knobs
    say(f"{name}: not tuned for scenario '{scenario}'; 'dvc repro heuristics@{scenario}' tunes it")
    return {}


def write_curve(path: Path, updates: Sequence[tuple[int, Mapping[str, float]]]) -> None:
    """Write a learning curve, one row per update and metric."""
    rows = [(step, metric, float(value)) for step, metrics in updates for metric, value in metrics.items()]
    write_table(path, pd.DataFrame(rows, columns=list(CURVE.columns)), CURVE)


def read_curve(agent: str, stage: str) -> pd.DataFrame:
    """Read the learning curve of an agent's stage."""
    return read_table(curve_file(agent, stage), CURVE)


def write_figure(name: str, content: bytes, folder: str = "figures") -> Path:
    """Write a figure and return its path."""
    path = REPORTS / folder / f"{name}.png"
    write(path, content)
    return path


def write_failure(place: Path, line: str) -> None:
    """Write the reason why a policy has no results, in their place."""
    write(place / FAILED, f"{line}\n".encode())


def failures(params: Params) -> dict[str, str]:
    """Return the reason of each failed external policy, by its name."""
    files = {name: results_folder("policies", name) / FAILED for name in params.policies}
    return {name: read_text(file).strip() for name, file in files.items() if file.is_file()}


def scored(params: Params, scenario: str) -> list[str]:
    """Return the policies judged on a scenario, without failed external ones."""
    failed = failures(params)
    return [name for name in params.agents_of(scenario) if name not in failed]


def check_passed(name: str) -> None:
    """Refuse an external policy without results, with a UserError that has the reason."""
    place = results_folder("policies", name)
    if not place.is_dir():
        raise missing(place)
    if (place / FAILED).is_file():
        again = f"after a change of its file 'dvc repro'; the same once more: 'dvc repro -sf policy@{name}'"
        raise UserError(f"{read_text(place / FAILED).strip()}; {again}")
