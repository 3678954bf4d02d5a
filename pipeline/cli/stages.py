"""Commands without options: those that dvc.yaml runs, one for each stage, and tasks that are like them."""

from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from pipeline.cli.base import (
    STAGES,
    AgentName,
    AsJson,
    PlanName,
    PolicyName,
    ScenarioName,
    SiteName,
    TransferName,
    answer,
    app,
    group,
    learning,
    read_params,
)
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.core.config import Params

evaluation = group("evaluate", "Score heuristics or an agent on the test jobsets, or compare all scores.", STAGES)
MODULES = {"agent": "evaluate", "compile": "compiling"}  # of stages, if not named like the command
TASKS = ("compile", "confirm", "report")  # not stages of DVC
RESULTS = {  # files that these commands write, and print with --json
    "hindsight": "reports/tables/hindsight/{row}/hindsight.parquet",
    "gate": "reports/gate.json",
    "confirm": "reports/confirm/{row}/comparison.csv",
}
RELAYED = ("generate", "pretrain", "finetune")  # may run on another machine
# Command: the argument, which names a row of params.yaml; its example; help.
COMMANDS = {
    "log": (None, "", "Point data/log at the workload's log, so that DVC detects its changes."),
    "generate": (ScenarioName, "online", "Draw a scenario's train, validation and test jobsets."),
    "pretrain": (AgentName, "deeprm2", "Clone a heuristic, or write the initial weights."),
    "finetune": (AgentName, "deeprm2", "Improve an agent by policy gradient."),
    "hindsight": (ScenarioName, "online", "Solve test jobsets as if all their jobs were known."),
    "gate": (None, "", "Judge whether a candidate may become the champion of its scenario."),
    "evaluate heuristics": (ScenarioName, "online", "Tune and score the heuristics of a scenario."),
    "evaluate agent": (AgentName, "deeprm", "Score an agent on its scenario's test jobsets."),
    "evaluate transfer": (TransferName, "streams", "Score an agent on a scenario that it was not trained on."),
    "evaluate plan": (PlanName, "plan_deeprm3", "Score a policy with look-ahead on its scenario's test jobsets."),
    "evaluate policy": (PolicyName, "mine", "Score an external policy on its scenario's test jobsets."),
    "evaluate passed": (PolicyName, "mine", "Fail if an external policy could not be scored."),
    "evaluate papers": (None, "", "Draw the papers' figures next to the papers' claims."),
    "compile": (None, "", "Compile the code of all stages in advance, on up to four cores."),
    "confirm": (ScenarioName, "online", "Play all policies on jobsets that no other command uses, for publication."),
    "report": (None, "", "Write all results as one page, reports/index.html."),
}


def _agent(params: "Params", command: str, row: str) -> str | None:
    """Return the agent whose networks a stage uses, if any."""
    match command:
        case "pretrain" | "finetune" | "evaluate agent":
            return row
        case "evaluate transfer":
            return params.transfer(row).agent
        case "evaluate plan":
            base = params.plan(row).base
            return base if base in params.agents else None
    return None


def _add(command: str, argument: object, example: str, help: str) -> None:
    *inside, name = command.split()
    module = MODULES.get(name, name)

    def run(row: str = "", as_json: bool = False) -> None:
        params = read_params()
        if name in RELAYED:
            from pipeline.execution.relay import relay

            if relay(params.threads, module, row):
                return
        if agent := _agent(params, command, row):
            learning(params, agent)
        import_module(f"pipeline.stages.{module}").run(params, *([row] if argument else []))
        answer((), Path(RESULTS.get(command, "").format(row=row)), as_json)

    kind = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("row", kind, annotation=argument)] if argument else []
    if command in RESULTS:
        parameters.append(Parameter("as_json", kind, default=False, annotation=AsJson))
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    help = f"{help}\n\nExample: python -m pipeline {command} {example}".rstrip()
    panel = None if inside or name in TASKS else STAGES
    (evaluation if inside else app).command(name, help=help, rich_help_panel=panel)(run)


for _command, _about in COMMANDS.items():
    _add(_command, *_about)


@app.command(rich_help_panel=STAGES)
def advise(
    site: SiteName,
    slurm: Annotated[Path | None, Option(help="Write settings for Slurm into this folder, from the advice.")] = None,
    policy: Annotated[str | None, Option(help="Order of these settings (default: the advised one).")] = None,
    config: Annotated[Path | None, Option(help="Output of 'scontrol show config'.")] = None,
    partitions: Annotated[Path | None, Option(help="Output of 'scontrol show partition'.")] = None,
    nodes: Annotated[Path | None, Option(help="Output of 'scontrol show node'.")] = None,
    as_json: AsJson = False,
) -> None:
    """Replay a site's log under every order of its queue, and recommend one: reports/advice.html.

    Example: python -m pipeline advise site
    """
    params = read_params()
    given = {"--policy": policy, "--config": config, "--partitions": partitions, "--nodes": nodes}
    if slurm is None:
        if extra := next((option for option, value in given.items() if value is not None), None):
            raise UserError(f"{extra}: only with --slurm FOLDER")
        import_module("pipeline.stages.advise").run(params, site)
        answer((), Path(f"reports/advice/{site}/evidence.json"), as_json)
        return
    if as_json:
        raise UserError("--json: not with --slurm")
    from pipeline.stages.site import write_slurm_settings

    write_slurm_settings(params, site, slurm, policy, {"config": config, "partitions": partitions, "nodes": nodes})


@evaluation.command("compare")
def evaluate_compare(as_json: AsJson = False) -> None:
    """Compare every scored policy, with intervals, after a report on agents that changed since the last commit.

    Example: python -m pipeline evaluate compare
    """
    params = read_params()
    from pipeline.stages import compare
    from pipeline.tracking.changes import report_changes

    if not as_json:
        report_changes(params)
    compare.run(params)
    answer((), Path("reports/metrics.json"), as_json)
