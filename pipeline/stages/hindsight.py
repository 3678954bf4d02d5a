"""`hindsight`: solve the first test jobsets of a scenario with full knowledge of their jobs."""

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas.tables import HINDSIGHT
from pipeline.problems import problem_of

TABLE = "hindsight.parquet"


def run(params: Params, scenario: str) -> None:
    """Write reports/tables/hindsight/<scenario>: the best schedule found for each jobset, and its bound."""
    place = storage.results_folder("hindsight", scenario)
    with tracking.stage("hindsight", scenario, params) as run:
        run.inputs(storage.jobsets_folder(scenario), storage.results_folder("heuristics", scenario))
        frame = problem_of(params, scenario).hindsight(params, scenario)
        means = frame.groupby("load")["objective"].mean()
        curve = {int(load): float(mean) for load, mean in zip(means.index, means, strict=True)}
        run.parent_curve("slowdown/hindsight", curve)
        storage.discard(place)
        storage.write_table(place / TABLE, frame, HINDSIGHT)
