"""Tracking: record in MLflow what ran; the only importer of mlflow.

DVC decides what runs and holds the results, MLflow is a view of them: nothing here may stop a stage or lose a result.
One parent run is one `dvc repro` or experiment, its child runs are the stages. PIPELINE_TRACKING=off records nothing.
"""

from pipeline.tracking.run import StageRun, stage
