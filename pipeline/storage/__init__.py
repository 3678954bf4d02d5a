"""The only reader and writer of the pipeline's files; every table is checked by its schema on the way in and out.

Files are written beside their place and renamed, so that a killed run leaves no partial file behind.
"""

from pipeline.storage.checkpoints import (
    Checkpoint,
    checkpoint_file,
    checkpoint_key,
    drop_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from pipeline.storage.files import (
    check_table,
    discard,
    line_of,
    read_json,
    read_table,
    read_text,
    write,
    write_json,
    write_table,
)
from pipeline.storage.locks import hold
from pipeline.storage.logs import link_log
from pipeline.storage.models import Model, nearest_model, read_model, write_model
from pipeline.storage.origins import write_compared, write_origin
from pipeline.storage.paths import (
    DATA,
    LOG,
    LOGS,
    MODELS,
    REPORTS,
    TABLES,
    curve_file,
    jobsets_folder,
    model_folder,
    results_folder,
    scenario_log,
)
from pipeline.storage.results import (
    Chosen,
    knobs_for,
    read_also,
    read_chosen,
    read_curve,
    read_job_results,
    read_jobset_results,
    write_chosen,
    write_curve,
    write_figure,
    write_results,
)

__all__ = [
    "DATA",
    "LOG",
    "LOGS",
    "MODELS",
    "REPORTS",
    "TABLES",
    "Checkpoint",
    "Chosen",
    "Model",
    "check_table",
    "checkpoint_file",
    "checkpoint_key",
    "curve_file",
    "discard",
    "drop_checkpoints",
    "hold",
    "jobsets_folder",
    "knobs_for",
    "line_of",
    "link_log",
    "model_folder",
    "nearest_model",
    "read_also",
    "read_checkpoint",
    "read_chosen",
    "read_curve",
    "read_job_results",
    "read_jobset_results",
    "read_json",
    "read_model",
    "read_table",
    "read_text",
    "results_folder",
    "scenario_log",
    "write",
    "write_checkpoint",
    "write_chosen",
    "write_compared",
    "write_curve",
    "write_figure",
    "write_json",
    "write_model",
    "write_origin",
    "write_results",
    "write_table",
]
