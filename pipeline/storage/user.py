"""A user's own job table or log."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow

from pipeline.config import Scenario, Swf
from pipeline.errors import UserError
from pipeline.schemas import user_jobs_schema
from pipeline.storage.files import check_columns, check_table, one_line
from pipeline.workload.tables import log_table, whole_numbers
from pipeline.workload.traces import READERS
from pipeline.workload.windows import describe, discretise

IDS = ("jobset", "job")


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
    check_columns(frame, schema, str(path))
    if frame.empty:
        raise UserError(f"{path}: expected jobs, found none")
    return check_table(whole_numbers(frame, list(scenario.resources), str(path)), schema, str(path)), ()


def _read_user_table(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except pd.errors.EmptyDataError as error:
        raise UserError(f"{path}: expected jobs, found an empty file") from error
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (OSError, ValueError, EOFError, zlib.error, pyarrow.ArrowException) as error:
        raise UserError(f"{path}: not a readable table ({one_line(error)})") from error
    if path.suffix != ".parquet" and not isinstance(frame.index, pd.RangeIndex):
        raise UserError(f"{path}: expected as many fields in a row as in the header, found more")
    return frame.reset_index(drop=True)


def _read_csv(path: Path) -> pd.DataFrame:
    """Read ids as they are written (007 is not 7, and NA is a name), whole numbers where all are such."""
    frame = pd.read_csv(path, dtype=dict.fromkeys(IDS, str), keep_default_na=False, na_values=[""])
    plain = [name for name in IDS if name in frame and frame[name].str.fullmatch(r"0|-?[1-9]\d{0,17}").all()]
    return frame.astype(dict.fromkeys(plain, "int64"))
