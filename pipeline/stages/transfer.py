"""`transfer`: score an agent, pretrained and finetuned, on a scenario that it was not trained on."""

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.stages.evaluate import score_agent


def run(params: Params, transfer: str) -> None:
    """Write reports/tables/transfers/<transfer>: the results of the agent's networks on the other scenario."""
    row = params.transfer(transfer)
    with tracking.stage("transfer", transfer, params) as run:
        score_agent(params, row.agent, row.scenario, storage.results_folder("transfers", transfer), run)
