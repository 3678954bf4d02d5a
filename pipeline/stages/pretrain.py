"""`pretrain`: clone a heuristic, or write the seeded initial weights."""

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.policies.loading import card_of, weights_of
from pipeline.policies.networks import build
from pipeline.progress import progress
from pipeline.stages.reading import judge_of, read_task
from pipeline.training.algorithms import ALGORITHMS
from pipeline.training.decisions import Update


def run(params: Params, agent: str) -> None:
    """Write models/<agent>/pretrained and the curve of its training."""
    row = params.agent(agent)
    chosen = row.pretrain
    with tracking.stage("pretrain", agent, params) as run, progress(f"pretrain {agent}", chosen.budget) as advance:
        run.inputs(storage.jobsets_folder(row.scenario))
        task = read_task(params, agent, chosen)
        network = build(row.network, task.cluster, params.seed)
        curve = []
        for update in ALGORITHMS[chosen.name](network, task, chosen):
            run.metrics(update.metrics, update.step)
            advance(update.step, update.note)
            curve.append(update)
        end = Update(len(curve) + 1, {"validation": judge_of(network, task)()})
        run.metrics(end.metrics, end.step)
        advance(chosen.budget, end.note)
        model = storage.Model(card_of(params, agent), weights_of(network))
        storage.write_model(storage.model_folder(agent, "pretrained"), model)
        storage.write_curve(storage.curve_file(agent, "pretrain"), [*curve, end])
