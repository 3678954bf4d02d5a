"""`log`: link data/ to the logs and external policies of params.yaml, so that DVC detects their changes."""

from pipeline.core import storage
from pipeline.core.config import Params


def run(params: Params) -> None:
    """Link the logs and the policies, or record that there are none."""
    storage.link_log(params)
    storage.link_policies(params)
