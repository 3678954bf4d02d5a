"""The only reader and writer of the pipeline's files; every table is checked by its schema when read and written.

Files are written under another name and renamed, so that a killed run leaves no partial file.
"""

from pipeline.core.config.parsing import read_text
from pipeline.core.storage.files import discard, hold, read_json, read_table, write, write_json, write_table
from pipeline.core.storage.jobsets import write_compared, write_origin
from pipeline.core.storage.links import link_log, link_policies, source_of
from pipeline.core.storage.models import Model, problem_of_model, read_model, unknown_policy, write_model
from pipeline.core.storage.paths import (
    LOG,
    LOGS,
    OUTAGES_NAME,
    REPORTS,
    TABLES,
    curve_file,
    jobsets_folder,
    model_folder,
    policy_folder,
    results_folder,
    scenario_log,
)
from pipeline.core.storage.results import (
    Chosen,
    check_passed,
    failures,
    knobs_for,
    read_also,
    read_chosen,
    read_curve,
    read_job_results,
    read_jobset_results,
    scored,
    write_chosen,
    write_curve,
    write_failure,
    write_figure,
    write_results,
)
