"""`finetune`: improve the pretrained policy by its own play; the best weights on validation jobsets are kept."""

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.policies.loading import card_of, weights_of
from pipeline.progress import progress
from pipeline.stages.reading import judge_of, read_network, read_task
from pipeline.training.algorithms import ALGORITHMS
from pipeline.training.selection import best_on_validation


def run(params: Params, agent: str) -> None:
    """Write models/<agent>/policy and the curve of its training."""
    row = params.agent(agent)
    chosen = row.finetune
    with tracking.stage("finetune", agent, params) as run, progress(f"finetune {agent}", chosen.updates) as advance:
        run.inputs(storage.jobsets_folder(row.scenario), storage.model_folder(agent, "pretrained"))
        task = read_task(params, agent, chosen)
        network = read_network(agent, "pretrained").network
        updates = ALGORITHMS[chosen.name](network, task, chosen)
        judge = judge_of(network, task)
        curve = []
        for update in best_on_validation(updates, network, judge, chosen.validate_every, chosen.updates):
            run.metrics(update.metrics, update.step)
            advance(update.step, update.note)
            curve.append(update)
        model = storage.Model(card_of(params, agent), weights_of(network))
        storage.write_model(storage.model_folder(agent, "policy"), model)
        storage.write_curve(storage.curve_file(agent, "finetune"), curve)
        run.model(storage.model_folder(agent, "policy"))
