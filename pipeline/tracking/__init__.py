"""Tracking: record runs in MLflow; the only importer of mlflow.

DVC decides what runs and keeps the results, MLflow is a view of them: tracking must not stop a stage or lose a result.
A parent run is one `dvc repro` or experiment, its child runs are the stages. PIPELINE_TRACKING=off disables it.
"""

from pipeline.tracking.run import StageRun, stage
