"""The command line: one command per stage and per user task; no logic.

Heavy imports stand inside the commands, so that --help answers at once.
"""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config import Params

app = typer.Typer(
    help="Learn cluster schedulers and compare them with the heuristics people already use.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
evaluation = typer.Typer(help="Score heuristics or an agent on the test jobsets, or compare all that was scored.")
app.add_typer(evaluation, name="evaluate", no_args_is_help=True)

STOPPED = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
AGAIN_S = 2.0  # behind a signal that was lost

ScenarioName = Annotated[str, typer.Argument(help="A scenario of params.yaml, as 'online'.", metavar="SCENARIO")]
AgentName = Annotated[str, typer.Argument(help="An agent of params.yaml, as 'deeprm'.", metavar="AGENT")]


def _params() -> "Params":
    """Read and check all of params.yaml, then hold numba and torch to its threads."""
    from pipeline.config import load_params
    from pipeline.policies.heuristics import check_names, check_teachers
    from pipeline.workload.synthetic import check_synthetic

    params = load_params()
    check_synthetic(params)
    check_names(params)
    check_teachers(params)
    os.environ["NUMBA_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(params.threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # torch's idle threads leave the cores to numba's
    return params


def _learning(params: "Params", agent: str) -> str:
    """Hold torch to the threads of params.yaml, and return the agent's name if there is one."""
    import torch

    params.agent(agent)
    torch.set_num_threads(params.threads)
    return agent


@app.command()
def log() -> None:
    """Point data/log at the workload's log, so that DVC sees its content. Example: python -m pipeline log."""
    from pipeline.stages.log import run

    run(_params())


@app.command()
def generate(scenario: ScenarioName) -> None:
    """Draw a scenario's train, validation and test jobsets. Example: python -m pipeline generate online."""
    params = _params()
    from pipeline.stages.generate import run

    run(params, scenario)


@app.command()
def pretrain(agent: AgentName) -> None:
    """Clone a heuristic, or write the initial weights. Example: python -m pipeline pretrain deeprm2."""
    params = _params()
    from pipeline.stages.pretrain import run

    run(params, _learning(params, agent))


@app.command()
def finetune(agent: AgentName) -> None:
    """Improve an agent by policy gradient. Example: python -m pipeline finetune deeprm2."""
    params = _params()
    from pipeline.stages.finetune import run

    run(params, _learning(params, agent))


@evaluation.command("heuristics")
def evaluate_heuristics(scenario: ScenarioName) -> None:
    """Tune and score the heuristics of a scenario. Example: python -m pipeline evaluate heuristics online."""
    params = _params()
    from pipeline.stages.heuristics import run

    run(params, scenario)


@evaluation.command("agent")
def evaluate_agent(agent: AgentName) -> None:
    """Score an agent on its scenario's test jobsets. Example: python -m pipeline evaluate agent deeprm."""
    params = _params()
    from pipeline.stages.evaluate import run

    run(params, _learning(params, agent))


@evaluation.command("compare")
def evaluate_compare() -> None:
    """Compare every scored policy, with intervals. Example: python -m pipeline evaluate compare."""
    params = _params()
    from pipeline.stages.compare import run

    run(params)


@app.command()
def schedule(
    jobs: Annotated[Path, typer.Argument(help="Job table (.csv, .csv.gz, .parquet) or log (.swf, .swf.gz).")],
    scenario: Annotated[str, typer.Option(help="The scenario whose cluster runs the jobs.")],
    policy: Annotated[str, typer.Option(help="A heuristic by name, or a model directory, as models/deeprm.")],
    out: Annotated[Path, typer.Option(help="Where to write the schedule (.csv, .csv.gz or .parquet).")],
    capacity: Annotated[int | None, typer.Option(help="Units of each resource instead of the scenario's.")] = None,
    slots: Annotated[int | None, typer.Option(help="Job slots instead of the scenario's.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps of the horizon instead of the scenario's.")] = None,
) -> None:
    """Schedule your own jobs.

    Example: python -m pipeline schedule jobs.csv --scenario online --policy sjf --out schedule.csv.
    """
    params = _params()
    row = params.scenario(scenario).changed(capacity, slots, horizon)
    from pipeline.stages.schedule import run

    run(params, jobs, row, policy, out)


class Stopped(BaseException):
    """The process was told to end; no library takes this for an error of its own, as some do a KeyboardInterrupt."""


def _stop(number: int, _: object) -> None:
    # What is raised while compiled code calls back into Python is lost: come again until it gets through.
    signal.signal(signal.SIGALRM, lambda *_: _stop(number, None))
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    raise Stopped(number)


def main() -> None:
    """Run a command; a user's mistake ends it with one line on stderr and exit code 2, a signal with one and 128 more.

    What is half written is cleared away on the way out.
    """
    for number in STOPPED:
        if signal.getsignal(number) != signal.SIG_IGN:  # as it is behind nohup
            signal.signal(number, _stop)
    try:
        app()
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2) from None
    except Stopped as stopped:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stderr.write(f"{STOPPED[stopped.args[0]]}; run again to resume\n")
        raise SystemExit(128 + stopped.args[0]) from None
