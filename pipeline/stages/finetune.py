"""`finetune`: improve the pretrained policy through its own experience, and keep the best weights on validation."""

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.learning.memory import best_on_validation
from pipeline.learning.resuming import training_run
from pipeline.problems import problem_of
from pipeline.progress import progress


def run(params: Params, agent: str) -> None:
    """Write models/<agent>/policy and its learning curve."""
    row = params.agent(agent)
    problem = problem_of(params, row.scenario)
    how, chosen = problem.learning, row.finetune
    model, curve = storage.model_folder(agent, "policy"), storage.curve_file(agent, "finetune")
    with tracking.stage("finetune", agent, params) as run:
        inputs = (storage.jobsets_folder(row.scenario), storage.model_folder(agent, "pretrained"))
        run.inputs(*inputs)
        task = how.task(params, agent, chosen)
        network = how.stored(params, agent, "pretrained")
        needed = (storage.LOG, storage.scenario_log(row.scenario), *inputs)
        training = training_run(params, "finetune", agent, chosen, needed)
        updates = problem.algorithms[chosen.name](network, task, chosen, training.memory)
        validate = how.validate(network, task)
        best = best_on_validation(updates, network, validate, chosen.validate_every, chosen.updates, training.memory)
        with progress(f"finetune {agent}", chosen.updates, training.memory.done) as advance:
            for update in training.checkpointed(best, network):
                run.metrics(update.metrics, update.step)
                advance(update.step, update.note)
        storage.discard(model, curve)
        storage.write_model(model, how.model(params, agent, network))
        storage.write_curve(curve, training.curve)
        run.model(model)
    training.finish()
