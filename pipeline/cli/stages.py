"""The commands that dvc.yaml runs, one a stage."""

from pipeline.cli.base import (
    STAGES,
    AgentName,
    PlanName,
    PolicyName,
    ScenarioName,
    TransferName,
    app,
    evaluation,
    learning,
    read_params,
)


@app.command(rich_help_panel=STAGES)
def log() -> None:
    """Point data/log at the workload's log, so that DVC sees its content.

    Example: python -m pipeline log
    """
    from pipeline.stages.log import run

    run(read_params())


@app.command(rich_help_panel=STAGES)
def generate(scenario: ScenarioName) -> None:
    """Draw a scenario's train, validation and test jobsets.

    Example: python -m pipeline generate online
    """
    params = read_params()
    from pipeline.execution.relay import relay

    if relay(params.threads, "generate", scenario):
        return
    from pipeline.stages.generate import run

    run(params, scenario)


@app.command(rich_help_panel=STAGES)
def pretrain(agent: AgentName) -> None:
    """Clone a heuristic, or write the initial weights.

    Example: python -m pipeline pretrain deeprm2
    """
    params = read_params()
    from pipeline.execution.relay import relay

    if relay(params.threads, "pretrain", agent):
        return
    from pipeline.stages.pretrain import run

    run(params, learning(params, agent))


@app.command(rich_help_panel=STAGES)
def finetune(agent: AgentName) -> None:
    """Improve an agent by policy gradient.

    Example: python -m pipeline finetune deeprm2
    """
    params = read_params()
    from pipeline.execution.relay import relay

    if relay(params.threads, "finetune", agent):
        return
    from pipeline.stages.finetune import run

    run(params, learning(params, agent))


@evaluation.command("heuristics")
def evaluate_heuristics(scenario: ScenarioName) -> None:
    """Tune and score the heuristics of a scenario.

    Example: python -m pipeline evaluate heuristics online
    """
    params = read_params()
    from pipeline.stages.heuristics import run

    run(params, scenario)


@app.command(rich_help_panel=STAGES)
def hindsight(scenario: ScenarioName) -> None:
    """Solve test jobsets as if all their jobs were known.

    Example: python -m pipeline hindsight online
    """
    params = read_params()
    from pipeline.stages.hindsight import run

    run(params, scenario)


@evaluation.command("agent")
def evaluate_agent(agent: AgentName) -> None:
    """Score an agent on its scenario's test jobsets.

    Example: python -m pipeline evaluate agent deeprm
    """
    params = read_params()
    from pipeline.stages.evaluate import run

    run(params, learning(params, agent))


@evaluation.command("transfer")
def evaluate_transfer(transfer: TransferName) -> None:
    """Score an agent on a scenario that it was not trained on.

    Example: python -m pipeline evaluate transfer streams
    """
    params = read_params()
    learning(params, params.transfer(transfer).agent)
    from pipeline.stages.transfer import run

    run(params, transfer)


@evaluation.command("plan")
def evaluate_plan(plan: PlanName) -> None:
    """Score a policy that looks ahead on its scenario's test jobsets.

    Example: python -m pipeline evaluate plan plan_deeprm3
    """
    params = read_params()
    row = params.plan(plan)
    if row.base in params.agents:
        learning(params, row.base)
    from pipeline.stages.plan import run

    run(params, plan)


@evaluation.command("policy")
def evaluate_policy(policy: PolicyName) -> None:
    """Score a policy that was made elsewhere on its scenario's test jobsets.

    Example: python -m pipeline evaluate policy mine
    """
    params = read_params()
    from pipeline.stages.policy import run

    run(params, policy)


@evaluation.command("passed")
def evaluate_passed(policy: PolicyName) -> None:
    """End with an error where a policy that was made elsewhere could not be scored.

    Example: python -m pipeline evaluate passed mine
    """
    params = read_params()
    from pipeline.stages.passed import run

    run(params, policy)


@evaluation.command("compare")
def evaluate_compare() -> None:
    """Compare every scored policy, with intervals; first say which agents moved since the last commit.

    Example: python -m pipeline evaluate compare
    """
    params = read_params()
    from pipeline.stages import compare, moved

    moved.run(params)
    compare.run(params)


@evaluation.command("papers")
def evaluate_papers() -> None:
    """Draw the papers' figures, beside what they claim.

    Example: python -m pipeline evaluate papers
    """
    params = read_params()
    from pipeline.stages.papers import run

    run(params)


@app.command(rich_help_panel=STAGES)
def gate() -> None:
    """Judge whether a candidate may become the champion of its scenario.

    Example: python -m pipeline gate
    """
    params = read_params()
    from pipeline.stages.gate import run

    run(params)
