"""What is compared on many machines beside slowdown: bounded slowdown, waits, and what users of large jobs met."""

from collections.abc import Sequence

import pandas as pd

from pipeline import storage
from pipeline.config import Params
from pipeline.problems import Comparison, Evidence, Validated
from pipeline.problems.machines.evaluation.metrics import summary
from pipeline.problems.machines.tables import SUMMARY, TABLES
from pipeline.schemas import empty
from pipeline.storage import Chosen


def evidence(params: Params, scenarios: Sequence[str]) -> Evidence:
    """Return the summary that only many machines have."""
    found = [summary(storage.read_jobset_results(params, name, TABLES), name) for name in scenarios]
    frame = pd.concat(found, ignore_index=True) if found else empty(SUMMARY)
    return Evidence({"machines_summary.csv": (frame, SUMMARY)}, {})


def validated(params: Params, agent: str, chosen: Chosen) -> Validated:
    """Return what an agent's learning curve is drawn beside."""
    row = params.agents[agent]
    levels = chosen.over(row.finetune.loads) if row.objective == "bounded_slowdown" else {}
    return Validated(levels, f"Mean {row.objective.replace('_', ' ')} on validation jobsets")


COMPARISON = Comparison(evidence, validated)
