"""Tasks of people: `show`, `schedule`, `explain`, `trace`, `export`; and `try`, the first command to run.

`show` draws one jobset under two policies. `schedule` runs policies over a user's own jobs, writes when each job
starts, and compares the policies' means. `explain` says how a policy's decisions differ from those of a well-known
rule, `trace` what is in a real cluster's log, and `export` writes a network as a file that runs without this project.

`try` draws sixty jobs under SJF and under a trained agent, and prints the gain. Its inputs are in `trial`: a cluster,
the jobs (the first jobset of sixty that seed 1 draws there), and `deeprm3` of params.yaml after 540 updates. No stage
has to run first.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from pipeline.comparing.plots import png
from pipeline.core import storage
from pipeline.core.config import Params, known_names, load_params, pick
from pipeline.core.logs.registry import read
from pipeline.core.storage.files import check_out
from pipeline.core.storage.user_tables import user_table
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.external.guard import PolicyError
from pipeline.interactive.explaining import explain as explaining
from pipeline.interactive.explaining.explain import ExplainRequest
from pipeline.interactive.logs.overview import figures, tables
from pipeline.interactive.scheduling import schedule as scheduling
from pipeline.interactive.scheduling.schedule import ScheduleRequest, added
from pipeline.interactive.showing.show import ShowRequest, draw
from pipeline.lookahead.planner import PREFIX
from pipeline.problems import PROBLEMS, problem, problem_of
from pipeline.progress import progress, remark, say

TRIAL = Path(__file__).parent / "trial"
AGENT = "deeprm3"
MEASURES = ("slowdown", "bounded_slowdown", "wait")  # columns of a schedule, if its problem has them
IDS = ("jobset", "job", "group", "queue", "machine")
Means = dict[str, float]  # of a schedule, by column


def try_it(out: Path) -> tuple[dict[str, Json], list[str]]:
    """Write the picture; return the mean slowdowns, and lines on the gain and the next steps."""
    check_out(out, [".png"])
    params = load_params(TRIAL / "params.yaml")
    request, policies = ShowRequest(TRIAL / "jobs.csv", "trial"), ["sjf", str(TRIAL / AGENT)]
    drawn = draw(problem_of(params, "trial").show, params, request, policies, ["SJF", AGENT])
    storage.write(out, drawn.content)
    sjf, agent = drawn.slowdowns
    change, here = agent / sjf - 1, Path.cwd()
    jobs, model = (
        path.relative_to(here) if path.is_relative_to(here) else path for path in (TRIAL / "jobs.csv", TRIAL / AGENT)
    )
    return {"picture": str(out), "mean_slowdown": {"sjf": sjf, AGENT: agent}}, [
        f"{AGENT} serves 60 jobs with a mean slowdown of {agent:.2f}, SJF (shortest job first) with {sjf:.2f}: "
        f"{100 * abs(change):.0f} % {'lower' if change < 0 else 'higher'}.",
        "Slowdown is the time from a job's arrival to its end over its run time: 1 is best.",
        *(f"  {half.replace(chr(10), ', ')}" for half in drawn.halves),
        f"{out}: both schedules, side by side. The agent was trained before, on other jobs.",
        "One jobset is an example and no proof: 'make repro' trains and tests every agent on hundreds, with intervals.",
        f"Your own jobs, in a table like {jobs}:",
        "  python -m pipeline schedule jobs.csv --scenario online \\",
        f"    --policy {model} --out schedule.csv",
    ]


def show(params: Params, request: ShowRequest, policies: Sequence[str], out: Path) -> dict[str, Json]:
    """Write the picture of a jobset under some policies; return its title and their mean slowdowns."""
    check_out(out, [".png"])
    picture = draw(problem_of(params, request.scenario).show, params, request, policies)
    storage.write(out, picture.content)
    remark(f"{out}: {picture.title}")
    for half in picture.halves:
        remark(f"  {half.replace(chr(10), ', ')}")
    return {"title": picture.title, "mean_slowdown": dict(zip(policies, picture.slowdowns, strict=True))}


def explain(params: Params, request: ExplainRequest) -> None:
    """Write reports/explain/<policy>."""
    request = resolved(params, request)
    explaining.explain(problem_of(params, request.scenario or "").explain, params, request)


def resolved(params: Params, request: ExplainRequest) -> ExplainRequest:
    """Return the request with its scenario; an agent outside its own scenario is named by its folder."""
    name = request.agent.removeprefix("models/").rstrip("/")
    if (row := params.policies.get(name)) and request.scenario in (None, row.scenario):
        return request._replace(agent=row.policy, scenario=row.scenario)
    rows = {**params.agents, **params.plans}
    if name in rows and request.scenario in (None, rows[name].scenario):
        return request._replace(agent=name, scenario=rows[name].scenario)
    if name in params.plans or (name.startswith(PREFIX) and not Path(request.agent).is_dir()):
        known = known_names(params.plans, name) if params.plans else "there is none"
        raise UserError(
            f"policy '{name}': a policy with look-ahead needs a row of `plans` in params.yaml, "
            f"and is explained in the scenario of that row; {known}"
        )
    if request.scenario is None:
        try:
            pick(rows, name, "agent or plan" if params.plans else "agent")
        except UserError as error:
            raise UserError(f"{error}; for a heuristic or another model, name the scenario by --scenario") from None
    return request._replace(agent=f"models/{name}" if name in params.agents else request.agent)


def trace(path: Path, format: str | None, nodes: Path | None, out: Path | None) -> dict[str, pd.DataFrame]:
    """Write the tables and figures of a log, and return the tables."""
    name = Path(path.name.removesuffix(".gz")).stem
    folder = storage.REPORTS / "trace" / name if out is None else out
    with progress(f"read {path}, percent", 100, brief=True) as advance:
        log = read(path, format, advance, nodes=nodes)
    for doubt in log.doubts:
        say(f"warning: {doubt}")
    found = tables(log)
    frames = {what: frame for what, (frame, _) in found.items()}
    for what, (frame, schema) in found.items():
        storage.write_table(folder / f"{what}.csv", frame, schema)
    for what, figure in figures(name, frames).items():
        storage.write(folder / f"{what}.png", png(figure))
    remark(f"{folder}: {len(log.id):,} jobs in {len(found)} tables and their figures")
    return frames


def export(folder: Path, out: Path) -> dict[str, str | int]:
    """Write the network of a model's folder as an ONNX file; return its name and size."""
    check_out(out, [".onnx"])
    word = storage.problem_of_model(folder)
    if word not in PROBLEMS:
        raise UserError(f"{folder}: expected a model of {', '.join(PROBLEMS)}, found one of '{word}'")
    try:
        content = problem(word).export(folder)
    except ModuleNotFoundError as error:
        raise UserError(f"export needs {error.name}: pip install 'deeprm-pipeline[onnx]'") from error
    storage.write(out, content)
    remark(f"{out}: {len(content):,} bytes, from {folder}")
    return {"file": str(out), "bytes": len(content), "model": str(folder)}


def schedule(
    params: Params, request: ScheduleRequest, policies: Sequence[str], as_data: bool = False
) -> tuple[dict[str, Means], list[str]]:
    """Write a schedule for each policy; return means, if several or `as_data`, and a table of them, if several."""
    how = problem_of(params, request.scenario).schedule
    several = len(policies) > 1
    places = [place_of(request.out, policy) if several else request.out for policy in policies]
    for place, count in Counter(places).items():
        if count > 1:
            raise UserError(f"--policy: {count} policies would write {place}: name each once")
    found, failed = dict[str, Means](), list[PolicyError]()
    for policy, place in zip(policies, places, strict=True):
        try:
            scheduling.schedule(how, params, request._replace(policy=policy, out=place))
        except PolicyError as error:
            failed.append(error)
        else:
            found[policy] = means(place) if several or as_data else {}
    lines = list(table(found)) if several else []
    if failed:
        say(*lines, *(f"error: {error}" for error in failed[:-1]))
        raise failed[-1]
    return {policy: {f"mean_{name}": value for name, value in row.items()} for policy, row in found.items()}, lines


def place_of(out: Path, policy: str) -> Path:
    """Return the file of one policy's schedule among several.

    >>> place_of(Path("mine/plan.csv.gz"), "models/deeprm3").as_posix()
    'mine/plan_deeprm3.csv.gz'
    >>> place_of(Path("mine.csv"), "plan_models/deeprm3").as_posix()
    'mine_plan_deeprm3.csv'
    """
    model = Path(policy).name
    title = f"{PREFIX}{model}" if policy.startswith(PREFIX) and policy != model else model
    return added(out, title.replace(":", "_"))


def means(place: Path) -> Means:
    """Return the mean of each measure over the started jobs of a written schedule."""
    sums, count = dict.fromkeys(MEASURES, 0.0), dict.fromkeys(MEASURES, 0)
    for rows, _ in user_table(place, IDS):
        for name in (name for name in MEASURES if name in rows):
            sums[name] += float(rows[name].sum())
            count[name] += int(rows[name].count())
    return {name: sums[name] / count[name] for name in MEASURES if count[name]}


def table(found: Mapping[str, Means]) -> Iterator[str]:
    """Yield the lines of a table, sorted by the first measure.

    >>> for line in table({"fcfs": {"slowdown": 3.0, "wait": 2.5}, "sjf": {"slowdown": 1.25, "wait": 10.0}}):
    ...     print(line)
    policy  mean slowdown  mean wait
    sjf              1.25         10
    fcfs                3        2.5
    """
    names = [name for name in MEASURES if any(name in row for row in found.values())]
    heads = [f"mean {name.replace('_', ' ')}" for name in names]
    wide = max(len(word) for word in ("policy", *found))
    yield "  ".join(["policy".ljust(wide), *heads])
    not_started = float("inf")
    for policy, row in sorted(found.items(), key=lambda one: one[1].get(names[0], not_started) if names else 0):
        cells = [f"{row[name]:.4g}" if name in row else "-" for name in names]
        yield "  ".join([policy.ljust(wide), *(cell.rjust(len(head)) for cell, head in zip(cells, heads, strict=True))])
