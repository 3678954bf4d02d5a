"""What `compare` draws and tells of streams, and of the distance to hindsight: scenarios in steps alone have them."""

import numpy as np
import pandas as pd

from pipeline import storage, tracking
from pipeline.config import Params, Scenario
from pipeline.evaluation.hindsight import hindsight_table
from pipeline.evaluation.plots import png
from pipeline.evaluation.stream_metrics import stream_summary
from pipeline.evaluation.stream_plots import backlog_growth
from pipeline.schemas import HINDSIGHT, HINDSIGHT_SUMMARY, STREAM_SUMMARY, empty


def streaming(params: Params, run: tracking.StageRun) -> pd.DataFrame:
    """Write the table and figures that only streams have, and return the table."""
    measured = {name: row for name, row in params.step_scenarios.items() if row.measured is not None}
    found = [_stream(params, name, row, run) for name, row in measured.items()]
    frame = pd.concat(found, ignore_index=True) if found else empty(STREAM_SUMMARY)
    storage.write_table(storage.REPORTS / "stream_summary.csv", frame, STREAM_SUMMARY)
    return frame


def foreseeing(params: Params) -> pd.DataFrame:
    """Write what each policy closes of the distance to hindsight, and return it."""
    found = [_closed(params, name) for name in params.hindsight.scenarios]
    frame = pd.concat(found, ignore_index=True) if found else empty(HINDSIGHT_SUMMARY)
    storage.write_table(storage.REPORTS / "hindsight.csv", frame, HINDSIGHT_SUMMARY)
    return frame


def _stream(params: Params, name: str, row: Scenario, run: tracking.StageRun) -> pd.DataFrame:
    backlog, classes = (storage.read_also(params, name, table) for table in ("backlog", "fairness"))
    title = f"Jobs waiting, scenario {name}"
    figure = backlog_growth(backlog, title, params.agents_of(name), row.measured)
    run.figure(storage.write_figure(f"backlog_{name}", png(figure)))
    results, rng = storage.read_jobset_results(params, name), np.random.default_rng(params.seed)
    return stream_summary(results, backlog, classes, name, params.evaluation, rng)


def _closed(params: Params, name: str) -> pd.DataFrame:
    solved = storage.read_table(storage.results_folder("hindsight", name) / "hindsight.parquet", HINDSIGHT)
    results, chosen = storage.read_jobset_results(params, name), storage.read_chosen(name)
    return hindsight_table(name, results, solved, chosen.best, params.evaluation, params.seed)
