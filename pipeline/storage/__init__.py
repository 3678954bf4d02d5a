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
    read_json,
    read_table,
    read_text,
    write,
    write_json,
    write_table,
)
from pipeline.storage.jobsets import write_compared, write_origin
from pipeline.storage.locks import hold
from pipeline.storage.logs import link_log
from pipeline.storage.models import Model, problem_of_model, read_model, unknown_policy, write_model
from pipeline.storage.paths import (
    LOG,
    LOGS,
    REPORTS,
    TABLES,
    curve_file,
    jobsets_folder,
    model_folder,
    results_folder,
    scenario_log,
)
from pipeline.storage.policies import (
    check_passed,
    failures,
    link_policies,
    policy_folder,
    scored,
    source_of,
    write_failure,
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
