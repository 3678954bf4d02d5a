"""Shared by all commands: the program, completion of names, and the checked parameters."""

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from pipeline import progress
from pipeline.errors import UserError
from pipeline.progress import folded

if TYPE_CHECKING:
    import pandas as pd

    from pipeline.core.config import Params

PACKAGE = "deeprm-pipeline"
STAGES = "Stages, which DVC runs"  # a heading of the help


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PACKAGE} {version(PACKAGE)}")
        raise typer.Exit


def _program(
    _: Annotated[
        bool, Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Take the options before a command."""


app = typer.Typer(
    callback=_program,
    help="Learn cluster schedulers and compare them with the heuristics people already use.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=Path(sys.argv[0]).name != "__main__.py",  # else the shell would complete `python`
    context_settings={"help_option_names": ["-h", "--help"]},
)


def group(name: str, help: str, panel: str | None = None) -> typer.Typer:
    """Add a group of commands; without its callback, typer would drop the name of a single command."""
    made = typer.Typer(help=help, callback=lambda: None)
    app.add_typer(made, name=name, no_args_is_help=True, rich_help_panel=panel)
    return made


def completed(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """Return the names that complete a word; none while params.yaml is invalid."""
    with suppress(UserError):
        return [name for name in names() if name.startswith(incomplete)]
    return []


def names_in(section: str) -> Callable[[str], list[str]]:
    """Return a function that completes a name of params.yaml."""

    def complete(incomplete: str) -> list[str]:
        from pipeline.core.config import load_params

        return completed(lambda: getattr(load_params(), section), incomplete)

    return complete


scenarios = names_in("scenarios")


def policies(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a policy: a trained model, or a heuristic of the named scenario or of all."""
    from pipeline.core.config import load_params
    from pipeline.problems import problem_of

    try:
        params = load_params()
    except UserError:
        return []
    named = context.params.get("scenario")
    rules: set[str] = set()
    for name in [named] if named in params.scenarios else list(params.scenarios):
        with suppress(UserError):  # its jobsets are not drawn yet
            rules.update(problem_of(params, name).scoring(params, name, None).heuristics({}))
    models = [f"models/{name}" for name, row in params.agents.items() if named in (None, row.scenario)]
    return [name for name in (*sorted(rules), *models) if name.startswith(incomplete)]


def _row(section: str, metavar: str, help: str) -> object:
    """Return an argument that names a row of params.yaml, or a stage of it, as DVC's $DVC_STAGE does."""

    def named(given: str | None) -> str:
        return (given or "").rpartition("@")[2]

    return Argument(help=help, metavar=metavar, autocompletion=names_in(section), callback=named)


ScenarioName = Annotated[str, _row("scenarios", "SCENARIO", "A scenario of params.yaml, as 'online'.")]
AgentName = Annotated[str, _row("agents", "AGENT", "An agent of params.yaml, as 'deeprm'.")]
PlanName = Annotated[str, _row("plans", "PLAN", "A policy of params.yaml with look-ahead, as 'plan_deeprm3'.")]
PolicyName = Annotated[str, _row("policies", "POLICY", "An external policy of params.yaml, as 'mine'.")]
TransferName = Annotated[str, _row("transfers", "TRANSFER", "A transfer of params.yaml, as 'streams'.")]
SiteName = Annotated[str, _row("sites", "SITE", "A site of params.yaml.")]
ScenarioOption = Annotated[str, Option(help="Scenario of the cluster.", autocompletion=scenarios)]
Decider = Annotated[
    str,
    Option(
        help="'champion', which follows champions.yaml; or a heuristic, or a model directory.", autocompletion=policies
    ),
]


def _as_json(wanted: bool) -> bool:
    progress.for_programs = wanted
    return wanted


AsJson = Annotated[bool, Option("--json", help="Print the answer as JSON, for programs.", callback=_as_json)]


def answer(lines: Iterable[str], data: object = None, as_json: bool = False) -> None:
    """Print an answer on stdout: lines for people, or its data as JSON, in which an unknown number is null."""
    if as_json:
        lines = [json.dumps(json.loads(json.dumps(data, default=_plain), parse_constant=lambda _: None))]
    for line in lines:
        typer.echo(line if as_json else folded(line, sys.stdout))


def _plain(value: "Path | pd.DataFrame") -> object:
    """Return a table as rows; for a path, the JSON or table in a file, or the tables in a folder by name."""
    if not isinstance(value, Path):
        return value.to_dict("records")
    if value.is_dir():
        return {path.stem: path for path in sorted(value.glob("*.csv"))}
    import pandas as pd

    from pipeline.core.storage import read_json

    if value.suffix == ".json":
        return read_json(value)
    return pd.read_parquet(value) if value.suffix == ".parquet" else pd.read_csv(value)


def read_params(every: bool = False, exclusive: bool = True) -> "Params":
    """Read and check params.yaml, report the first mistake or every one, and limit libraries to its threads.

    `exclusive`: no other process of this command competes for cores, so waiting threads may spin. Otherwise one may
    block the thread it waits for: two parallel training runs took five to ten times as long as in sequence.
    """
    from pipeline.core.config import load_params

    params = load_params(every=every)
    os.environ["NUMBA_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(params.threads)
    # Torch's idle threads yield to compiled loops, but not at once: waking one takes longer than a simulator's step.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "10000" if exclusive else "0")  # turns; about a hundred microseconds
    from pipeline.problems import check  # imports numpy, whose BLAS reads the number of threads only once

    check(params)
    return params


def learning(params: "Params", agent: str) -> str:
    """Limit torch to the threads of params.yaml, and return the agent's name if it exists."""
    import torch

    from pipeline.learning.stored import device_of, leave_compiler_out

    params.agent(agent)
    device_of(params.device)  # before any work
    torch.set_num_threads(params.threads)
    leave_compiler_out()
    return agent
