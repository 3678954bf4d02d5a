"""`report`: all results on one self-contained page. Not a DVC stage, because the page depends on the last commit."""

from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from platform import python_version

import pandas as pd

from pipeline.core import storage
from pipeline.core.config import PARAMS_FILE, Params
from pipeline.core.config.git import refusal
from pipeline.core.schemas import COMPARISON, DELAY, HINDSIGHT_SUMMARY, OBJECTIVES, STREAM_SUMMARY, SUMMARY
from pipeline.core.storage import evidence
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.interactive.showing.show import ShowRequest, draw
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.report import changes as differences
from pipeline.report.advice import answer
from pipeline.report.changes import Changes
from pipeline.report.page import Content, Origin, Picture, cards, data_uri, digests, figures, html, papers
from pipeline.report.tables import at_home, best_agent, middle_load, typical_jobset
from pipeline.simulation.results import BOUNDED

PAGE, SUMMARY_FILE = storage.REPORTS / "index.html", storage.REPORTS / "summary.csv"
TABLES = {  # read for the page
    **{"summary": SUMMARY, "comparison": COMPARISON, "delay": DELAY, "objectives": OBJECTIVES},
    **{"stream_summary": STREAM_SUMMARY, "hindsight": HINDSIGHT_SUMMARY},
}
PACKAGES = ("torch", "numpy", "numba", "pandas", "pyarrow", "pandera", "pydantic", "dvc", "mlflow", "matplotlib")


def run(params: Params) -> None:
    """Write reports/index.html."""
    files = {name: storage.REPORTS / f"{name}.csv" for name in TABLES}
    evidence.check_exist([*files.values(), storage.REPORTS / "figures", evidence.LOCK])
    tables = {name: storage.read_table(files[name], schema) for name, schema in TABLES.items()}
    summary, objectives = tables["summary"], tables["objectives"]
    agents = {name: row.objective for name, row in params.judged.items()}
    scored = {name: goal for name, goal in agents.items() if (summary["policy"] == name).any()}
    forgotten = evidence.forgotten()
    lock, values = evidence.read_lock(forgotten), evidence.read_params_values()
    bounded = {name for name in params.scenarios if BOUNDED in problem_of(params, name).tables.jobsets.columns}
    drawn = evidence.read_pictures(storage.REPORTS / "figures")
    curves = {name: storage.read_curve(name, "finetune") for name in scored if name in params.agents}
    claims = evidence.read_papers()
    failed = storage.failures(params)
    absent = sorted(set(agents) - set(scored) - set(failed))
    notes = differences.warnings(absent, differences.stale(lock, values), forgotten)
    schedule, why = _schedule(params, objectives, scored)
    notes += [*why, *failed.values()]
    for note in notes:
        say(f"report: {note}")
    head = evidence.head()
    page = html(
        Content(
            comparison=tables["comparison"],
            delay=tables["delay"],
            summary=summary,
            objectives=objectives,
            streams=tables["stream_summary"],
            foreseen=tables["hindsight"],
            agents=scored,
            words={name: row.policy for name, row in params.policies.items()},
            sites={name: answer(name, row.today) for name, row in params.sites.items()},
            confidence=params.evaluation.confidence,
            resamples=params.evaluation.resamples,
            seed=params.seed,
            figures=list(figures(drawn, summary, curves, bounded)),
            bounded=bounded,
            papers=[] if claims is None else list(papers(claims, evidence.read_pictures(storage.REPORTS / "papers"))),
            schedule=schedule,
            notes=notes,
            changes=_changes(head, summary, lock, values),
            parameters=storage.read_text(PARAMS_FILE),
            digests=digests(lock),
            cards=cards(evidence.read_cards()),
            origin=_origin(head),
        )
    )
    storage.write(PAGE, page.encode())
    say(f"{PAGE}: {len(page.encode()) / 1e6:.1f} MB; opens in any browser, without a network")


def _origin(head: evidence.Commit | None) -> Origin:
    versions = {"python": python_version()} | {name: metadata.version(name) for name in PACKAGES}
    commit: tuple[str, str, Sequence[str]] = ("", "", ()) if head is None else (head.id, head.subject, head.dirty)
    return Origin(*commit, versions, evidence.has_remote())


def _schedule(params: Params, objectives: pd.DataFrame, agents: Collection[str]) -> tuple[Picture | None, list[str]]:
    """Return the picture of the best agent next to SJF, or the reason why there is none."""
    homes = {name: params.judged[name].scenario for name in agents}
    agent = best_agent(at_home(objectives, homes), list(homes))
    if agent is None:
        return None, ["No schedule is drawn: no agent was compared with SJF."]
    scenario, external = params.judged[agent].scenario, params.policies.get(agent)
    word = external.policy if external else str(storage.model_folder(agent, "policy"))
    load, problem = middle_load(objectives, scenario), problem_of(params, scenario)
    try:
        pair = evidence.read_pair(agent, scenario, problem.tables)
        request = ShowRequest(None, scenario, load, str(typical_jobset(pair, agent, load)))
        drawn = draw(problem.show, params, request, [word, "sjf"], [agent, "sjf"])
    except UserError as error:
        return None, [f"No schedule is drawn: {error}."]
    halves = ". ".join(half.replace("\n", "; ") for half in drawn.halves)
    text = f"{drawn.title}; of its load, the one whose difference is nearest to the mean difference. {halves}."
    return Picture(text, f"Schedules side by side. {text}", data_uri(drawn.content)), []


def _changes(
    head: evidence.Commit | None, summary: pd.DataFrame, lock: evidence.Lock, values: Mapping[str, Json]
) -> Changes:
    if head is None:
        why = refusal() or "No git repository, or no commit in it"
        return Changes(f"{why}: there is no last run to compare with.")
    before = evidence.committed_table(SUMMARY_FILE, differences.METRIC_COLUMNS)
    old_lock, old_values = evidence.committed_lock(), evidence.committed_yaml(PARAMS_FILE)
    if before is None and not old_lock.outs:
        why = f"Commit {head.id[:10]} holds neither dvc.lock nor {SUMMARY_FILE}: there is no last run to compare with."
        return Changes(why)
    return Changes(
        f"{head.id[:10]} ({head.subject})",
        True,
        differences.moved(before, summary),
        list(differences.revalued(old_values, values)),
        differences.differing(old_lock, lock),
    )
