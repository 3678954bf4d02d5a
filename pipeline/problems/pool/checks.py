"""What only the code of a pooled cluster can tell of params.yaml: names of policies, loads, estimates."""

from pipeline.config import Params
from pipeline.problems.pool.heuristics.scores import check_names, check_plans, check_teachers
from pipeline.problems.pool.workload.estimates import check_estimates
from pipeline.problems.pool.workload.synthetic import check_synthetic


def check(params: Params) -> None:
    """Check all of it.

    Raises:
        UserError: one line for the first thing that is wrong.
    """
    for each in (check_synthetic, check_estimates, check_names, check_plans, check_teachers):
        each(params)
