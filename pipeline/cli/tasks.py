"""The commands that people run beside the stages."""

import os
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.base import app, learning, names_in, policies, read_params

EndOption = Annotated[
    int | None,
    typer.Option(min=1, help="Your jobs arrive before this step, and policies know it (default: they do not)."),
]
LoadOption = Annotated[
    float | None,
    typer.Option(min=0.1, help="Your jobs' load in percent of the cluster, as policies know it (default: not)."),
]


@app.command("try")
def try_it(out: Annotated[Path, typer.Option(help="Where to write the picture (.png).")] = Path("try.png")) -> None:
    """Show what a trained agent gains over SJF on sixty jobs, side by side; nothing has to be run before.

    Example: python -m pipeline try
    """
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiling takes longer than these few jobs do without
    from pipeline.stages import show

    for line in show.try_it(out):
        typer.echo(line)


@app.command()
def check(
    every: Annotated[bool, typer.Option("--all", help="Say every mistake, a line each, not the first alone.")] = False,
) -> None:
    """Check all of params.yaml, and that its logs are there; what runs a stage checks the file, too.

    Example: python -m pipeline check
    """
    params = read_params(every)
    from pipeline.config.evaluation import too_few
    from pipeline.logs.registry import check_there
    from pipeline.progress import say

    check_there(params)
    for line in filter(None, (too_few(params, name) for name in params.scenarios)):
        say(line)
    typer.echo(
        f"params.yaml: as it should be; scenarios {', '.join(params.scenarios)}; agents {', '.join(params.agents)}"
    )


@app.command("compile")
def compile_code() -> None:
    """Compile what the stages run, on up to four cores; else each does when it first gets there.

    Example: python -m pipeline compile
    """
    params = read_params()
    from pipeline.stages.compiling import run

    run(params)


@app.command()
def confirm(
    scenario: Annotated[
        str, typer.Argument(help="A scenario whose jobsets are drawn.", autocompletion=names_in("scenarios"))
    ],
) -> None:
    """Play all policies of a scenario on jobsets that nothing else ever plays, for a figure that is published.

    Example: python -m pipeline confirm online
    """
    params = read_params()
    from pipeline.stages.confirm import run

    run(params, scenario)


@app.command()
def schedule(
    jobs: Annotated[
        Path, typer.Argument(help="Job table (.csv, .csv.gz, .parquet), or a log of any format of docs/logs.md.")
    ],
    scenario: Annotated[
        str, typer.Option(help="The scenario whose cluster runs the jobs.", autocompletion=names_in("scenarios"))
    ],
    policy: Annotated[
        list[str],
        typer.Option(
            help="A heuristic by name, a model directory, as models/deeprm, or deeprm_tree after explain; repeatable.",
            autocompletion=policies,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where to write the schedule (.csv, .csv.gz or .parquet).")],
    capacity: Annotated[int | None, typer.Option(help="Units of each resource instead of the scenario's.")] = None,
    slots: Annotated[int | None, typer.Option(help="Job slots instead of the scenario's.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps of the horizon instead of the scenario's.")] = None,
    arrivals_end: EndOption = None,
    load: LoadOption = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Schedules that a model draws; of them and its own, the best. In hindsight.")
    ] = 0,
    search: Annotated[
        int, typer.Option(min=0, help="Schedules that a local search tries from the best so far. In hindsight.")
    ] = 0,
) -> None:
    """Schedule your own jobs: on one pooled cluster, on many machines, or in a cluster that groups share.

    What is written goes with the problem: who starts when and on which machine, or each group's share over time beside
    it. --capacity, --horizon, --arrivals-end, --load, --samples and --search are of pooled clusters alone.

    With several --policy each writes a file of its own beside --out (plan.csv: plan_sjf.csv, plan_deeprm.csv), and a
    table of their means is printed.

    With --samples and --search all jobs are known beforehand: a plan in hindsight, not an online policy, and never
    worse in mean slowdown than without them. A search takes at most 1,000,000,000 jobs times schedules, and jobsets of
    at most 200,000 steps between arrivals and of work.

    Example: python -m pipeline schedule jobs.csv --scenario online --policy sjf --out schedule.csv
    """
    params = read_params()
    from pipeline.scheduling.schedule import ScheduleRequest
    from pipeline.stages.schedule import run

    size, known = (capacity, slots, horizon), (arrivals_end, load)
    asked = ScheduleRequest(jobs, scenario, policy[0], out, *size, samples, search, *known)
    for line in run(params, asked, policy):
        typer.echo(line)


@app.command()
def show(
    scenario: Annotated[
        str, typer.Option(help="The scenario whose cluster runs the jobs.", autocompletion=names_in("scenarios"))
    ],
    policy: Annotated[
        str, typer.Option(help="A heuristic by name, or a model directory, as models/deeprm.", autocompletion=policies)
    ],
    against: Annotated[str, typer.Option(help="The other policy, drawn to its right.", autocompletion=policies)],
    out: Annotated[Path, typer.Option(help="Where to write the picture (.png).")],
    jobs: Annotated[
        Path | None, typer.Argument(help="Job table or log; without one, a test jobset of the scenario is shown.")
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(min=0.1, help="Load of the test jobset, in percent; of your own, as policies know it."),
    ] = None,
    jobset: Annotated[str | None, typer.Option(help="Number of the test jobset (0), or an id of the table.")] = None,
    begin: Annotated[int | None, typer.Option("--from", help="First step, or time, to draw.")] = None,
    end: Annotated[int | None, typer.Option("--to", help="Step, or time, to draw up to.")] = None,
    arrivals_end: EndOption = None,
) -> None:
    """Draw one jobset under two policies, side by side: rows of the cluster, machines as lanes, or shares as areas.

    Example: python -m pipeline show --scenario online --load 130 --policy models/deeprm --against sjf --out gantt.png
    """
    params = read_params()
    from pipeline.showing.show import ShowRequest
    from pipeline.stages.show import run

    run(params, ShowRequest(jobs, scenario, load, jobset, begin, end, arrivals_end), [policy, against], out)


@app.command()
def explain(
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "--agent",
            help="A trained agent, as models/deeprm, a row of plans, or with --scenario a heuristic or another model.",
            autocompletion=policies,
        ),
    ],
    scenario: Annotated[
        str | None,
        typer.Option(help="Where the policy decides (default: its own).", autocompletion=names_in("scenarios")),
    ] = None,
    jobsets: Annotated[int, typer.Option(min=1, help="Jobsets of each load to look at, at most.")] = 50,
    leaves: Annotated[int, typer.Option(min=2, help="Leaves of the tree, at most; user groups have none.")] = 24,
) -> None:
    """Tell what a policy does differently from SJF, or of user groups from shares by demand.

    Of a policy that places jobs, a small tree is made that nearly does the same. Of a policy that looks ahead, a row of
    plans, it tells what each candidate would have gained.

    Example: python -m pipeline explain --policy models/deeprm
    """
    params = read_params()
    from pipeline.explaining.explain import ExplainRequest
    from pipeline.stages.explain import resolved, run

    asked = resolved(params, ExplainRequest(policy, jobsets, leaves, scenario))
    if asked.agent in params.agents:
        learning(params, asked.agent)
    run(params, asked)


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model directory, as models/deeprm.")],
    out: Annotated[Path, typer.Argument(help="Where to write it (.onnx).")],
) -> None:
    """Write a trained network as an ONNX file, of fields of the observation: docs/how-to/external-policies.md.

    Example: python -m pipeline export models/deeprm deeprm.onnx
    """
    from pipeline.stages.export import run

    run(model, out)


@app.command()
def report() -> None:
    """Write all results as one page, reports/index.html.

    Example: python -m pipeline report
    """
    params = read_params()
    from pipeline.stages.report import run

    run(params)


@app.command()
def prune() -> None:
    """Remove what rows left that params.yaml no longer has: curves, models, tables, stages of dvc.lock.

    DVC's cache keeps all of it: the row brought back, dvc repro takes it from there. What was changed by hand stays.

    Example: python -m pipeline prune
    """
    from pipeline.stages.prune import run

    run()


@app.command()
def publish(
    rev: Annotated[list[str] | None, typer.Option(help="A commit, tag, branch or experiment; may be repeated.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All experiments, commits with a dvc.lock, workspace.")
    ] = False,
) -> None:
    """Add to MLflow what it misses: skipped, restored and spooled stages.

    Example: python -m pipeline publish --all
    """
    from pipeline.tracking.publish import publish as lines

    for line in lines(rev or [], everything):
        typer.echo(line)


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 5000,
    browser: Annotated[bool, typer.Option(help="Open the link in a browser.")] = True,
) -> None:
    """Open MLflow on this pipeline's runs.

    Example: python -m pipeline ui --port 5001
    """
    from pipeline.tracking.ui import serve

    for link in serve(port, browser):
        typer.echo(link)
