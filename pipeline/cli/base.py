"""What the commands share: the program, names that shells complete, and the checked parameters."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config import Params

STAGES = "Stages, which DVC runs"  # a heading of the help

app = typer.Typer(
    help="Learn cluster schedulers and compare them with the heuristics people already use.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=Path(sys.argv[0]).name != "__main__.py",  # it would be taken for that of `python`
    context_settings={"help_option_names": ["-h", "--help"]},
)
evaluation = typer.Typer(help="Score heuristics or an agent on the test jobsets, or compare all that was scored.")
app.add_typer(evaluation, name="evaluate", no_args_is_help=True, rich_help_panel=STAGES)


def names_in(section: str) -> Callable[[str], list[str]]:
    """Return what completes a name of params.yaml; a broken file completes nothing."""

    def complete(incomplete: str) -> list[str]:
        from pipeline.config import load_params

        try:
            names = getattr(load_params(), section)
        except UserError:
            return []
        return [name for name in names if name.startswith(incomplete)]

    return complete


def policies(context: typer.Context, incomplete: str) -> list[str]:
    """Return what completes a policy: trained models, and the heuristics of the scenario that was named, or of all."""
    from pipeline.config import load_params
    from pipeline.problems import problem_of

    try:
        params = load_params()
    except UserError:
        return []
    named = context.params.get("scenario")
    scenarios = [named] if named in params.scenarios else list(params.scenarios)
    rules: set[str] = set()
    for name in scenarios:
        with suppress(UserError):  # its jobsets are not drawn yet
            rules.update(problem_of(params, name).scoring(params, name, None).heuristics({}))
    models = [f"models/{name}" for name, row in params.agents.items() if named in (None, row.scenario)]
    return [name for name in (*sorted(rules), *models) if name.startswith(incomplete)]


def _row(section: str, metavar: str, help: str) -> object:
    """Return the argument that names a row of params.yaml; the name of its stage, DVC's $DVC_STAGE, ends with that."""

    def named(given: str | None) -> str:
        return (given or "").rpartition("@")[2]

    return typer.Argument(help=help, metavar=metavar, autocompletion=names_in(section), callback=named)


ScenarioName = Annotated[str, _row("scenarios", "SCENARIO", "A scenario of params.yaml, as 'online'.")]
AgentName = Annotated[str, _row("agents", "AGENT", "An agent of params.yaml, as 'deeprm'.")]
PlanName = Annotated[str, _row("plans", "PLAN", "A policy of params.yaml that looks ahead, as 'plan_deeprm3'.")]
PolicyName = Annotated[str, _row("policies", "POLICY", "A policy of params.yaml that was made elsewhere, as 'mine'.")]
TransferName = Annotated[str, _row("transfers", "TRANSFER", "A transfer of params.yaml, as 'streams'.")]
SiteName = Annotated[str, _row("sites", "SITE", "A site of params.yaml.")]


Decider = Annotated[
    str,
    typer.Option(
        help="'champion': that of champions.yaml, and each that follows it; or a heuristic, or a model directory.",
        autocompletion=policies,
    ),
]


def read_params(every: bool = False, alone: bool = True) -> "Params":
    """Read and check all of params.yaml, every mistake said or the first; hold libraries to its threads.

    `alone`: nothing else that this command begins wants the cores. A thread that spins while it waits for another takes
    the core that the other may need: two trainings at once took five to ten times as long as one behind the other.
    """
    from pipeline.config import load_params

    params = load_params(every=every)
    os.environ["NUMBA_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(params.threads)
    # torch's idle threads leave the cores to numba's; but not at once, for waking one takes longer than a lock step
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "10000" if alone else "0")  # turns; about a hundred microseconds
    from pipeline.problems import check  # numpy's BLAS, which comes with it, looks at its threads once

    check(params)
    return params


def learning(params: "Params", agent: str) -> str:
    """Hold torch to the threads of params.yaml, and return the agent's name if there is one."""
    import torch

    from pipeline.learning.device import device_of, leave_compiler_out

    params.agent(agent)
    device_of(params.device)  # before any work
    torch.set_num_threads(params.threads)
    leave_compiler_out()
    return agent
