"""`log`: point data/ at the logs and external policies of params.yaml, so that DVC sees when they change."""

from pipeline import storage
from pipeline.config import Params


def run(params: Params) -> None:
    """Link the logs and the policies, or note that there is none."""
    storage.link_log(params)
    storage.link_policies(params)
