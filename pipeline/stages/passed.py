"""`passed`: end with an error where a policy that was made elsewhere could not be scored, after all that could be."""

from pipeline import storage
from pipeline.config import Params


def run(params: Params, name: str) -> None:
    """Refuse a policy that failed.

    Raises:
        UserError: it did, and why.
    """
    params.policy(name)
    storage.check_passed(name)
