"""`show`: one jobset under two policies, side by side, as a picture; and `try`, the first command to run.

`try` draws sixty jobs under SJF and under a trained agent, and prints the gain. Its inputs are in `trial`: a cluster,
the jobs (the first jobset of sixty that seed 1 draws there), and `deeprm3` of params.yaml after 540 updates. No stage
has to run first.
"""

from collections.abc import Sequence
from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import Params, load_params
from pipeline.core.storage.files import check_out
from pipeline.core.types import Json
from pipeline.interactive.showing.show import ShowRequest, draw
from pipeline.problems import problem_of
from pipeline.progress import remark

TRIAL = Path(__file__).parent / "trial"
AGENT = "deeprm3"


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


def run(params: Params, request: ShowRequest, policies: Sequence[str], out: Path) -> dict[str, Json]:
    """Write the picture of a jobset under some policies; return its title and their mean slowdowns."""
    check_out(out, [".png"])
    picture = draw(problem_of(params, request.scenario).show, params, request, policies)
    storage.write(out, picture.content)
    remark(f"{out}: {picture.title}")
    for half in picture.halves:
        remark(f"  {half.replace(chr(10), ', ')}")
    return {"title": picture.title, "mean_slowdown": dict(zip(policies, picture.slowdowns, strict=True))}
