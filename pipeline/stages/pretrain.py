"""`pretrain`: clone a heuristic, or write the seeded initial weights."""

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.learning.resuming import training_run
from pipeline.learning.update import Update
from pipeline.problems import problem_of
from pipeline.progress import progress


def run(params: Params, agent: str) -> None:
    """Write models/<agent>/pretrained and its learning curve."""
    row = params.agent(agent)
    problem = problem_of(params, row.scenario)
    how, chosen = problem.learning, row.pretrain
    model, curve = storage.model_folder(agent, "pretrained"), storage.curve_file(agent, "pretrain")
    with tracking.stage("pretrain", agent, params) as run:
        inputs = (storage.jobsets_folder(row.scenario),)
        run.inputs(*inputs)
        task = how.task(params, agent, chosen)
        network = how.untrained(params, agent, task)
        needed = (storage.LOG, storage.scenario_log(row.scenario), *inputs)
        training = training_run(params, "pretrain", agent, chosen, needed)
        updates = problem.algorithms[chosen.name](network, task, chosen, training.memory)
        with progress(f"pretrain {agent}", chosen.budget, training.memory.done) as advance:
            for update in training.checkpointed(updates, network):
                run.metrics(update.metrics, update.step)
                advance(update.step, update.note)
            end = Update(len(training.curve) + 1, {"validation": how.validate(network, task)()})
            run.metrics(end.metrics, end.step)
            advance(chosen.budget, end.note)
        storage.discard(model, curve)
        storage.write_model(model, how.model(params, agent, network))
        storage.write_curve(curve, [*training.curve, end])
    training.finish()
