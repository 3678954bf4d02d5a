"""The only reader and writer of the pipeline's files; every table is checked by its schema on the way in and out.

Files are written beside their place and renamed, so that a killed run leaves no partial file behind.
"""

import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow
from pandera.errors import SchemaErrors
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_weights
from safetensors.numpy import save as save_weights

from pipeline.config import ModelCard, Params, Scenario, Swf, repository_root
from pipeline.core import SPLITS, FloatArray, JobSet
from pipeline.errors import UserError
from pipeline.schemas import CURVE, JOB_RESULTS, JOBSET_RESULTS, jobs_schema, user_jobs_schema
from pipeline.workload.tables import log_table, whole_numbers
from pipeline.workload.traces import READERS
from pipeline.workload.windows import describe, discretise

DATA = Path("data")
MODELS = Path("models")
REPORTS = Path("reports")
TABLES = REPORTS / "tables"
LOG = DATA / "log"
DIGITS = 6

JobSets = Mapping[int, list[JobSet]]  # by load


class Model(NamedTuple):
    """A network as it is stored: what it is, and its weights by name."""

    card: ModelCard
    weights: dict[str, FloatArray]


def jobsets_folder(scenario: str) -> Path:
    """Return where the jobsets of a scenario are."""
    return DATA / "jobsets" / scenario


def model_folder(agent: str, which: str) -> Path:
    """Return where an agent's model is: `pretrained` or `policy`."""
    return MODELS / agent / which


def curve_file(agent: str, stage: str) -> Path:
    """Return where the curve of an agent's training is."""
    return REPORTS / "curves" / f"{agent}_{stage}.csv"


def results_folder(kind: str, name: str) -> Path:
    """Return where results are: of the `heuristics` of a scenario, or of one of the `agents`."""
    return TABLES / kind / name


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write metrics as JSON, its numbers to six significant digits."""
    write(path, (json.dumps(_rounded(values), indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read a JSON file that the pipeline wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _missing(path) from error
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error})") from error


def _rounded(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {key: _rounded(value) for key, value in values.items()}
    return float(f"{values:.{DIGITS}g}") if isinstance(values, float) else values


def write_table(path: Path, frame: pd.DataFrame, schema: pa.DataFrameSchema) -> None:
    """Check a table and write it, as parquet or CSV by the path's suffix (.csv, .csv.gz, .parquet)."""
    checked = check_table(frame, schema, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{os.getpid()}.part.{path.name}")
    try:
        if path.suffix == ".parquet":
            checked.to_parquet(part, index=False)
        else:
            packing: Any = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
            checked.to_csv(part, index=False, float_format=f"%.{DIGITS}g", compression=packing, lineterminator="\n")
        part.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        part.unlink(missing_ok=True)


def read_table(path: Path, schema: pa.DataFrameSchema) -> pd.DataFrame:
    """Read a table that the pipeline wrote, and check it."""
    reader: Callable[..., pd.DataFrame] = pd.read_parquet if path.suffix == ".parquet" else pd.read_csv
    try:
        frame = reader(path)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UserError(f"{path}: not a readable table ({_one_line(error)})") from error
    return check_table(frame, schema, str(path))


def check_table(frame: pd.DataFrame, schema: pa.DataFrameSchema, where: str) -> pd.DataFrame:
    """Return the table if it keeps to its schema.

    Raises:
        UserError: one line: the first rule broken, where, and what was found.
    """
    _check_columns(frame, schema, where)
    try:
        return schema.validate(frame, lazy=True)
    except SchemaErrors as error:
        cases = error.failure_cases
        first = cases.iloc[0]
        column = "" if first["column"] in (None, schema.name) else f" {first['column']}:"
        row = "" if pd.isna(first["index"]) else f" in row {first['index']}"
        more = f" (and {len(cases) - 1} more)" if len(cases) > 1 else ""
        raise UserError(
            f"{where}:{column} expected {first['check']}, got {first['failure_case']}{row}{more}"
        ) from error


def _check_columns(frame: pd.DataFrame, schema: pa.DataFrameSchema, where: str) -> None:
    wanted, found = list(schema.columns), list(frame.columns)
    if set(wanted) != set(found):
        missing, extra = [c for c in wanted if c not in found], [str(c) for c in found if c not in wanted]
        words = [f"{kind} {', '.join(names)}" for kind, names in (("missing", missing), ("unknown", extra)) if names]
        raise UserError(f"{where}: columns: expected {', '.join(wanted)}; {'; '.join(words)}")


def _missing(path: Path) -> UserError:
    return UserError(f"{path} is missing: run 'dvc repro' (or 'dvc pull') first")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def write_jobsets(folder: Path, split: str, jobsets: JobSets, resources: Mapping[str, int]) -> None:
    """Write the jobsets of one split."""
    frame = jobs_frame(jobsets, resources)
    write_table(folder / f"{split}.parquet", frame, jobs_schema(resources))


def read_jobsets(folder: Path, split: str, resources: Mapping[str, int]) -> dict[int, list[JobSet]]:
    """Read the jobsets of one split, by load."""
    if split not in SPLITS:
        raise ValueError(f"expected one of {SPLITS}, got {split!r}")
    frame = read_table(folder / f"{split}.parquet", jobs_schema(resources))
    found: dict[int, list[JobSet]] = {}
    edges = np.flatnonzero(np.diff(frame["load"]) | np.diff(frame["jobset"])) + 1
    arrival, duration, demand = (
        np.split(frame[columns].to_numpy(), edges) for columns in ("arrival", "duration", list(resources))
    )
    loads = frame["load"].to_numpy()[np.concatenate([[0], edges])] if len(frame) else []
    for load, *columns in zip(loads, arrival, duration, demand, strict=True):
        found.setdefault(int(load), []).append(JobSet(*columns))
    return found


def jobs_frame(jobsets: JobSets, resources: Mapping[str, int]) -> pd.DataFrame:
    """Return jobsets as a table, one row a job."""
    rows = [
        {"load": load, "jobset": k, "job": np.arange(len(jobs.arrival)), "arrival": jobs.arrival}
        | {"duration": jobs.duration}
        | {name: jobs.demand[:, r] for r, name in enumerate(resources)}
        for load, group in jobsets.items()
        for k, jobs in enumerate(group)
    ]
    return pd.concat([pd.DataFrame(row) for row in rows], ignore_index=True).astype("int64")


def write_results(folder: Path, jobs: Sequence[pd.DataFrame], jobsets: Sequence[pd.DataFrame]) -> None:
    """Write what became of every job and jobset under some policies."""
    write_table(folder / "jobs.parquet", pd.concat(jobs, ignore_index=True), JOB_RESULTS)
    write_table(folder / "jobsets.parquet", pd.concat(jobsets, ignore_index=True), JOBSET_RESULTS)


def read_jobset_results(params: Params, scenario: str) -> pd.DataFrame:
    """Read the jobset results of every policy of a scenario: heuristics, and the agents of params.yaml."""
    folders = [results_folder("heuristics", scenario)]
    folders += [results_folder("agents", agent) for agent, row in params.agents.items() if row.scenario == scenario]
    frames = [read_table(folder / "jobsets.parquet", JOBSET_RESULTS) for folder in folders]
    return pd.concat(frames, ignore_index=True)


class Chosen(NamedTuple):
    """What validation jobsets chose among the heuristics of a scenario."""

    best: dict[int, str]  # load -> heuristic
    validation: dict[str, dict[int, float]]  # heuristic -> load -> mean slowdown

    def over(self, loads: Sequence[int]) -> dict[str, float]:
        """Return each heuristic's mean over those of the loads that were scored; over all where none was (a log)."""
        scored = [load for load in loads if load in self.best] or list(self.best)
        return {name: float(np.mean([row[load] for load in scored])) for name, row in self.validation.items()}


def read_chosen(scenario: str) -> Chosen:
    """Read what validation jobsets chose."""
    found = read_json(results_folder("heuristics", scenario) / "chosen.json")
    best = {int(load): name for load, name in found["best"].items()}
    means = {name: {int(load): mean for load, mean in row.items()} for name, row in found["validation"].items()}
    return Chosen(best, means)


def write_curve(path: Path, updates: Sequence[tuple[int, Mapping[str, float]]]) -> None:
    """Write a learning curve, one row an update and metric."""
    rows = [(step, metric, float(value)) for step, metrics in updates for metric, value in metrics.items()]
    write_table(path, pd.DataFrame(rows, columns=list(CURVE.columns)), CURVE)


def read_curve(agent: str, stage: str) -> pd.DataFrame:
    """Read the learning curve of an agent's stage."""
    return read_table(curve_file(agent, stage), CURVE)


def write_figure(name: str, content: bytes) -> Path:
    """Write a figure and return where it is."""
    path = REPORTS / "figures" / f"{name}.png"
    write(path, content)
    return path


def write_model(folder: Path, model: Model) -> None:
    """Write a model directory: weights without pickle, and a card that says what they are."""
    write(folder / "policy.safetensors", save_weights({k: np.ascontiguousarray(v) for k, v in model.weights.items()}))
    write(folder / "policy.json", (model.card.model_dump_json(indent=2) + "\n").encode())


def read_model(folder: Path) -> Model:
    """Read a model directory, or the `policy` inside an agent's directory.

    Raises:
        UserError: it is no model directory, or its files are damaged.
    """
    inside = folder / "policy"
    place = inside if inside.is_dir() else folder
    card_file, weights_file = place / "policy.json", place / "policy.safetensors"
    if not card_file.is_file() or not weights_file.is_file():
        raise UserError(f"{folder}: not a model directory: expected policy.json and policy.safetensors in it")
    try:
        card = ModelCard.model_validate_json(card_file.read_bytes())
        return Model(card, load_weights(weights_file.read_bytes()))
    except ValidationError as error:
        raise UserError(f"{card_file}: not a model card ({_one_line(error)})") from error
    except (SafetensorError, ValueError) as error:
        raise UserError(f"{weights_file}: not weights ({_one_line(error)})") from error


def link_log(params: Params) -> None:
    """Point data/log at the workload's log, so that DVC sees its content; a plain note where there is none."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(params.workload, Swf):
        LOG.unlink(missing_ok=True)  # never write through a link into the user's log
        write(LOG, b"The workload is synthetic: there is no log.\n")
        return
    place = log_path(params.workload)
    part = LOG.with_name(f".{LOG.name}.part")
    part.unlink(missing_ok=True)
    part.symlink_to(place)
    part.replace(LOG)


def log_path(workload: Swf) -> Path:
    """Return where the log lies; a relative path starts at the repository's root."""
    place = (repository_root() / workload.path).resolve()
    if not place.is_file():
        raise UserError(f"params.yaml: workload.path: no such file: {place}")
    return place


def check_table_suffix(path: Path) -> None:
    """Refuse, before any work is done, to write a table under a name that does not say how."""
    if not path.name.endswith((".csv", ".csv.gz", ".parquet")):
        raise UserError(f"{path}: expected a name that ends in .csv, .csv.gz or .parquet")


def read_jobs(path: Path, scenario: Scenario, swf: Swf) -> tuple[pd.DataFrame, Sequence[str]]:
    """Read a user's job table, or a log as one; return it with what there is to say of it.

    Raises:
        UserError: the file cannot be read, or a row is not a job that the scenario's cluster can run.
    """
    suffixes = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    if suffixes in (".swf", ".swf.gz"):
        log = READERS["swf"](path)
        steps = discretise(log, swf, scenario.resources, scenario.horizon)
        return log_table(steps, list(scenario.resources)), describe(log, steps)
    if suffixes not in (".csv", ".csv.gz", ".parquet"):
        raise UserError(f"{path}: expected .csv, .csv.gz, .parquet, .swf or .swf.gz")
    frame = _read_user_table(path)
    schema = user_jobs_schema(scenario.resources, scenario.horizon)
    _check_columns(frame, schema, str(path))
    if frame.empty:
        raise UserError(f"{path}: expected jobs, found none")
    return check_table(whole_numbers(frame, list(scenario.resources), str(path)), schema, str(path)), ()


def _read_user_table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except pd.errors.EmptyDataError as error:
        raise UserError(f"{path}: expected jobs, found an empty file") from error
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (OSError, ValueError, EOFError, zlib.error, pyarrow.ArrowException) as error:
        raise UserError(f"{path}: not a readable table ({_one_line(error)})") from error
