"""Comparisons on many machines in addition to slowdown: bounded slowdown, waits, response times of large jobs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pipeline.core import storage
from pipeline.core.config import MachinesLog, Params
from pipeline.core.schemas import empty
from pipeline.core.storage import Chosen
from pipeline.problems.machines.env.evaluation.metrics import summary
from pipeline.problems.machines.env.storage import read_park
from pipeline.problems.machines.env.tables import SUMMARY, TABLES, jobs_schema
from pipeline.problems.parts import Comparison, Evidence, Tested, Validated, validation_label


def evidence(params: Params, scenarios: Sequence[str]) -> Evidence:
    """Return the summary of the scenarios of many machines."""
    found = [
        summary(storage.read_jobset_results(params, name, TABLES), name, storage.read_chosen(name).best)
        for name in scenarios
    ]
    frame = pd.concat(found, ignore_index=True) if found else empty(SUMMARY)
    return Evidence({"machines_summary.csv": (frame, SUMMARY)}, {})


def validated(params: Params, agent: str, chosen: Chosen) -> Validated:
    """Return the heuristics' reference lines for an agent's learning curve."""
    row = params.agents[agent]
    levels = chosen.over(row.finetune.loads) if row.objective == "bounded_slowdown" else {}
    return Validated(levels, validation_label(row.objective, "time units"))


def tested(params: Params, scenario: str) -> Tested:
    """Return a scenario's test jobsets; windows of a log are the same at every load, blocks are drawn for each load."""
    folder, workload = storage.jobsets_folder(scenario), params.machines_scenario(scenario).workload
    park = read_park(folder)
    total = np.array(park.capacity, dtype=np.int64).sum(axis=0)
    return Tested(
        jobs=storage.read_table(folder / "test.parquet", jobs_schema(park.resources)),
        capacity=dict(zip(park.resources, total.tolist(), strict=True)),
        same_windows=isinstance(workload, MachinesLog) and workload.parts is None,
    )


COMPARISON = Comparison(evidence, validated, tested, ("random",))
