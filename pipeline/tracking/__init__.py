"""Tracking: record runs in MLflow; the only importer of mlflow.

DVC decides what runs and keeps the results; MLflow only shows them. So tracking must not stop a stage or lose a result.
A parent run is one `dvc repro` or experiment; its child runs are the stages. PIPELINE_TRACKING=off disables tracking.
"""

from pipeline.tracking.run import StageRun, stage
