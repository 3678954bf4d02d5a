"""Contents of MLflow's database, and the environment of a process that writes to it."""

import os
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run

REPOSITORY = Path(__file__).parents[2]
FOREIGN = ("MLFLOW_TRACKING_URI", "PIPELINE_TRACKING", "DVC_ROOT", "DVC_STAGE", "DVC_EXP_NAME", "DVC_EXP_BASELINE_REV")


class Records:
    """Contents of a database, as MLflow's client reads them."""

    def __init__(self, place: Path | str) -> None:
        """Read the database in a folder, or that of a server at an address."""
        self.client = MlflowClient(place if isinstance(place, str) else f"sqlite:///{place / 'mlflow.db'}")
        self.experiment = self.client.get_experiment_by_name("scheduler-pipeline")

    def runs(self, stage: str = "") -> list[Run]:
        wanted = f"tags.stage = '{stage}'" if stage else "tags.stage != 'pipeline'"
        return list(self.client.search_runs([self.experiment.experiment_id], wanted))

    def parents(self) -> list[Run]:
        return self.runs("pipeline")

    def only(self, stage: str = "") -> Run:
        (run,) = self.runs(stage)
        return run

    def points(self, run: Run, metric: str) -> list[tuple[int, float]]:
        return sorted((point.step, point.value) for point in self.client.get_metric_history(run.info.run_id, metric))


def environment(**more: str) -> dict[str, str]:
    """The environment of a process that runs the working tree's pipeline, without MLflow settings of another test.

    Its stages send their records at once, unless the test sets this otherwise.
    """
    own = {key: value for key, value in os.environ.items() if key not in FOREIGN and not key.startswith("MLFLOW_HTTP")}
    return {**own, "PYTHONPATH": str(REPOSITORY), "PIPELINE_TRACKING": "live", **more}
