"""Commands that people run on a policy, on jobs, or on params.yaml."""

import os
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pipeline.cli.base import AsJson, ScenarioOption, answer, app, completed, learning, policies, read_params, scenarios

ArrivalsEnd = Annotated[int | None, Option(min=1, help="First step after all your arrivals, if policies know it.")]
Load = Annotated[float | None, Option(min=0.1, help="Load of your jobs in percent, if policies know it.")]
Policy = Annotated[str, Option(help="A heuristic, or a model directory, as models/deeprm.", autocompletion=policies)]


@app.command("try")
def try_it(
    out: Annotated[Path, Option(help="Picture to write (.png).")] = Path("try.png"), as_json: AsJson = False
) -> None:
    """Show what a trained agent gains over SJF on sixty jobs, side by side; no stage has to run first.

    Example: python -m pipeline try
    """
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiling takes longer than running these few jobs uncompiled
    from pipeline.stages.tasks import try_it as tried

    found, lines = tried(out)
    answer(lines, found, as_json)


@app.command()
def check(
    every: Annotated[bool, Option("--all", help="Report every mistake, not only the first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check all of params.yaml, and that its logs exist; every command checks the file, too.

    Example: python -m pipeline check
    """
    params = read_params(every)
    from pipeline.core.config.evaluation import too_few
    from pipeline.core.logs.registry import check_there
    from pipeline.progress import say

    check_there(params)
    say(*filter(None, (too_few(params, name) for name in params.scenarios)))
    line = f"params.yaml: valid; scenarios {', '.join(params.scenarios)}; agents {', '.join(params.agents)}"
    answer([line], {"scenarios": [*params.scenarios], "agents": [*params.agents]}, as_json)


def places(incomplete: str) -> list[str]:
    """Complete a place of params.yaml; none if the file is invalid."""
    from pipeline.core.config import load_params
    from pipeline.interactive.reference import explained

    around, _, begun = incomplete.rpartition(".")
    found = completed(lambda: (key.name for key, _ in explained(load_params(), around)[1]), begun)
    return [f"{around}.{name}".lstrip(".") for name in found]


@app.command()
def explain_params(
    place: Annotated[str, Argument(help="A place, as agents.deeprm3 (default: all).", autocompletion=places)] = "",
    schema: Annotated[Path | None, Option(help="Write a JSON schema for editors (.json).", dir_okay=False)] = None,
) -> None:
    """Explain the keys of params.yaml: meaning, permitted values, and present values.

    Example: python -m pipeline explain-params agents.deeprm3
    """
    from pipeline.core.config import load_params
    from pipeline.interactive import reference

    if schema is not None:
        from pipeline.core import storage
        from pipeline.core.storage.files import check_out

        check_out(schema, [".json"])
        storage.write_json(schema, reference.schema())
        return
    means, rows = reference.explained(load_params(), place)
    lines = [f"{place or 'params.yaml'}: {means}"]
    for key, now in rows:
        lines += ["", f"  {key.name}: {now}"]
        if key.may_be:
            default = f"; {key.default} where it is left out" if key.default else ""
            lines.append(f"    {key.means} ({key.may_be}{default})")
    answer(lines)


@app.command()
def schedule(
    jobs: Annotated[Path, Argument(help="Job table (.csv, .csv.gz, .parquet), or a log in a format of docs/logs.md.")],
    scenario: ScenarioOption,
    policy: Annotated[
        list[str],
        Option(
            help="A heuristic, a model directory, as models/deeprm, or deeprm_tree after explain; repeatable.",
            autocompletion=policies,
        ),
    ],
    out: Annotated[Path, Option(help="Schedule to write (.csv, .csv.gz or .parquet).")],
    capacity: Annotated[int | None, Option(help="Units of each resource (default: the scenario's).")] = None,
    slots: Annotated[int | None, Option(help="Job slots (default: the scenario's).")] = None,
    horizon: Annotated[int | None, Option(help="Steps of the horizon (default: the scenario's).")] = None,
    arrivals_end: ArrivalsEnd = None,
    load: Load = None,
    samples: Annotated[int, Option(min=0, help="In hindsight: best of N schedules drawn by a model.")] = 0,
    search: Annotated[int, Option(min=0, help="In hindsight: try N schedules by local search.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Schedule your own jobs: on one pooled cluster, on many machines, or in a cluster that groups share.

    The output depends on the problem: each job's start and machine, or also each group's share over time. Only pooled
    clusters have --capacity, --horizon, --arrivals-end, --load, --samples and --search.

    With several --policy, each writes its own file next to --out (plan.csv: plan_sjf.csv, plan_deeprm.csv), and a table
    of their means is printed.

    With --samples and --search all jobs are known beforehand: a plan in hindsight, not an online policy, and never
    worse in mean slowdown than without them. A search is limited to 1,000,000,000 jobs times schedules, and to jobsets
    of up to 200,000 steps between arrivals and of work.

    Example: python -m pipeline schedule jobs.csv --scenario online --policy sjf --out schedule.csv
    """
    params = read_params()
    from pipeline.interactive.scheduling.schedule import ScheduleRequest
    from pipeline.stages.tasks import schedule as scheduled

    size, known = (capacity, slots, horizon), (arrivals_end, load)
    request = ScheduleRequest(jobs, scenario, policy[0], out, *size, samples, search, *known)
    found, lines = scheduled(params, request, policy, as_json)
    answer(lines, found, as_json)


@app.command()
def show(
    scenario: ScenarioOption,
    policy: Policy,
    against: Annotated[str, Option(help="The other policy, drawn on the right.", autocompletion=policies)],
    out: Annotated[Path, Option(help="Picture to write (.png).")],
    jobs: Annotated[Path | None, Argument(help="Job table or log (default: a test jobset of the scenario).")] = None,
    load: Annotated[float | None, Option(min=0.1, help="Load in percent; of your jobs, if policies know it.")] = None,
    jobset: Annotated[str | None, Option(help="Number of the test jobset (0), or an id of the table.")] = None,
    begin: Annotated[int | None, Option("--from", help="First step, or time, of the picture.")] = None,
    end: Annotated[int | None, Option("--to", help="End of the picture, as a step or time.")] = None,
    arrivals_end: ArrivalsEnd = None,
    as_json: AsJson = False,
) -> None:
    """Draw one jobset under two policies, side by side: rows of the cluster, machines as lanes, or shares as areas.

    Example: python -m pipeline show --scenario online --load 130 --policy models/deeprm --against sjf --out gantt.png
    """
    params = read_params()
    from pipeline.interactive.showing.show import ShowRequest
    from pipeline.stages.tasks import show as shown

    found = shown(params, ShowRequest(jobs, scenario, load, jobset, begin, end, arrivals_end), [policy, against], out)
    answer((), found, as_json)


@app.command()
def explain(
    policy: Annotated[
        str,
        Option(
            "--policy",
            "--agent",
            help="A trained agent, as models/deeprm, a row of plans, or with --scenario a heuristic or another model.",
            autocompletion=policies,
        ),
    ],
    scenario: Annotated[
        str | None, Option(help="Scenario of the decisions (default: its own).", autocompletion=scenarios)
    ] = None,
    jobsets: Annotated[int, Option(min=1, help="Maximum number of jobsets of each load.")] = 50,
    leaves: Annotated[int, Option(min=2, help="Maximum number of leaves of the tree; none for user groups.")] = 24,
    as_json: AsJson = False,
) -> None:
    """Explain how a policy differs from SJF or, for user groups, from shares by demand.

    For a policy that places jobs, a small tree is fitted that imitates it. For a policy with look-ahead, a row of
    plans, the expected gain of each candidate is listed.

    Example: python -m pipeline explain --policy models/deeprm
    """
    params = read_params()
    from pipeline.interactive.explaining.explain import ExplainRequest
    from pipeline.stages.tasks import explain as run
    from pipeline.stages.tasks import resolved

    request = resolved(params, ExplainRequest(policy, jobsets, leaves, scenario))
    if request.agent in params.agents:
        learning(params, request.agent)
    run(params, request)
    answer((), Path(f"reports/explain/{request.title}"), as_json)


@app.command()
def export(
    model: Annotated[Path, Argument(help="A model directory, as models/deeprm.")],
    out: Annotated[Path, Argument(help="File to write (.onnx).")],
    as_json: AsJson = False,
) -> None:
    """Write a trained network as an ONNX file; docs/how-to/external-policies.md describes its inputs.

    Example: python -m pipeline export models/deeprm deeprm.onnx
    """
    from pipeline.stages.tasks import export as exported

    answer((), exported(model, out), as_json)
