"""`pretrain`: clone a heuristic, or write the seeded initial weights."""

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.policies.device import device_of
from pipeline.policies.loading import card_of, weights_of
from pipeline.policies.networks import build
from pipeline.progress import progress
from pipeline.stages.reading import judge_of, read_task
from pipeline.stages.resuming import course
from pipeline.training.algorithms import ALGORITHMS
from pipeline.training.decisions import Update


def run(params: Params, agent: str) -> None:
    """Write models/<agent>/pretrained and the curve of its training."""
    row = params.agent(agent)
    chosen, results = row.pretrain, (storage.model_folder(agent, "pretrained"), storage.curve_file(agent, "pretrain"))
    with tracking.stage("pretrain", agent, params) as run:
        inputs = (storage.jobsets_folder(row.scenario),)
        run.inputs(*inputs)
        task = read_task(params, agent, chosen)
        network = build(row.network, task.cluster, task.seed).to(device_of(params.device))
        going = course(params, "pretrain", agent, chosen, (storage.LOG, *inputs))
        updates = ALGORITHMS[chosen.name](network, task, chosen, going.memory)
        with progress(f"pretrain {agent}", chosen.budget, going.memory.done) as advance:
            for update in going.kept(updates, network):
                run.metrics(update.metrics, update.step)
                advance(update.step, update.note)
            end = Update(len(going.curve) + 1, {"validation": judge_of(network, task)()})
            run.metrics(end.metrics, end.step)
            advance(chosen.budget, end.note)
        storage.discard(*results)
        storage.write_model(results[0], storage.Model(card_of(params, agent), weights_of(network)))
        storage.write_curve(results[1], [*going.curve, end])
    going.finish()
