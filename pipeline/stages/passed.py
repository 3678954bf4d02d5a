"""`passed`: fail if an external policy could not be scored, after all results have been written."""

from pipeline.core import storage
from pipeline.core.config import Params


def run(params: Params, name: str) -> None:
    """Raise a UserError with the reason if the policy failed."""
    params.policy(name)
    storage.check_passed(name)
