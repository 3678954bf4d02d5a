"""The commands that dvc.yaml runs, one a stage."""

from importlib import import_module

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


def _run(module: str, row: str | None = None, agent: str | None = None, relayed: bool = False) -> None:
    """Run a stage of a row of params.yaml, if it has one: here, or where an engine says, if it may be relayed.

    Before one that has networks of an agent, torch is held to the threads of params.yaml.
    """
    params = read_params()
    if relayed and row is not None:
        from pipeline.execution.relay import relay

        if relay(params.threads, module, row):
            return
    if agent is not None:
        learning(params, agent)
    import_module(f"pipeline.stages.{module}").run(params, *([] if row is None else [row]))


@app.command(rich_help_panel=STAGES)
def log() -> None:
    """Point data/log at the workload's log, so that DVC sees its content.

    Example: python -m pipeline log
    """
    _run("log")


@app.command(rich_help_panel=STAGES)
def generate(scenario: ScenarioName) -> None:
    """Draw a scenario's train, validation and test jobsets.

    Example: python -m pipeline generate online
    """
    _run("generate", scenario, relayed=True)


@app.command(rich_help_panel=STAGES)
def pretrain(agent: AgentName) -> None:
    """Clone a heuristic, or write the initial weights.

    Example: python -m pipeline pretrain deeprm2
    """
    _run("pretrain", agent, agent, relayed=True)


@app.command(rich_help_panel=STAGES)
def finetune(agent: AgentName) -> None:
    """Improve an agent by policy gradient.

    Example: python -m pipeline finetune deeprm2
    """
    _run("finetune", agent, agent, relayed=True)


@evaluation.command("heuristics")
def evaluate_heuristics(scenario: ScenarioName) -> None:
    """Tune and score the heuristics of a scenario.

    Example: python -m pipeline evaluate heuristics online
    """
    _run("heuristics", scenario)


@app.command(rich_help_panel=STAGES)
def hindsight(scenario: ScenarioName) -> None:
    """Solve test jobsets as if all their jobs were known.

    Example: python -m pipeline hindsight online
    """
    _run("hindsight", scenario)


@evaluation.command("agent")
def evaluate_agent(agent: AgentName) -> None:
    """Score an agent on its scenario's test jobsets.

    Example: python -m pipeline evaluate agent deeprm
    """
    _run("evaluate", agent, agent)


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
    _run("policy", policy)


@evaluation.command("passed")
def evaluate_passed(policy: PolicyName) -> None:
    """End with an error where a policy that was made elsewhere could not be scored.

    Example: python -m pipeline evaluate passed mine
    """
    _run("passed", policy)


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
    _run("papers")


@app.command(rich_help_panel=STAGES)
def gate() -> None:
    """Judge whether a candidate may become the champion of its scenario.

    Example: python -m pipeline gate
    """
    _run("gate")
