"""`log`: point data/log and data/logs at the logs of params.yaml, so that DVC sees when their content changes."""

from pipeline import storage
from pipeline.config import Params


def run(params: Params) -> None:
    """Link the logs, or note that there is none."""
    storage.link_log(params)
