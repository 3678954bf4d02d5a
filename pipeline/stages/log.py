"""`log`: point data/log at the workload's log, so that DVC sees when its content changes."""

from pipeline import storage
from pipeline.config import Params


def run(params: Params) -> None:
    """Link the log, or note that there is none."""
    storage.link_log(params)
