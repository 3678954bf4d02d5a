"""`report`: all evidence as one page that opens without a network. Not a stage of DVC: it speaks of the last commit."""

from collections.abc import Collection, Mapping
from importlib import metadata
from platform import python_version

import pandas as pd

from pipeline import storage
from pipeline.config import PARAMS_FILE, Params
from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.report import changes as differences
from pipeline.report.changes import Changes
from pipeline.report.headline import at_home, best_agent, middle_load, typical_jobset
from pipeline.report.page import Content, Origin, cards, digests, html
from pipeline.report.pictures import Picture, Shown, data_uri, figures, papers
from pipeline.schemas import COMPARISON, DELAY, HINDSIGHT_SUMMARY, OBJECTIVES, STREAM_SUMMARY, SUMMARY
from pipeline.showing.show import ShowRequest, draw
from pipeline.simulation.results import BOUNDED
from pipeline.storage import evidence, leftovers
from pipeline.tracking.source_tree import refusal

PAGE = storage.REPORTS / "index.html"
SUMMARY_FILE, COMPARISON_FILE = storage.REPORTS / "summary.csv", storage.REPORTS / "comparison.csv"
DELAY_FILE, OBJECTIVES_FILE = storage.REPORTS / "delay.csv", storage.REPORTS / "objectives.csv"
STREAMS_FILE, HINDSIGHT_FILE = storage.REPORTS / "stream_summary.csv", storage.REPORTS / "hindsight.csv"
TABLES = (SUMMARY_FILE, COMPARISON_FILE, DELAY_FILE, OBJECTIVES_FILE, STREAMS_FILE, HINDSIGHT_FILE)
PACKAGES = ("torch", "numpy", "numba", "pandas", "pyarrow", "pandera", "pydantic", "dvc", "mlflow", "matplotlib")


def run(params: Params) -> None:
    """Write reports/index.html."""
    evidence.check_exist([*TABLES, storage.REPORTS / "figures", evidence.LOCK])
    summary = storage.read_table(SUMMARY_FILE, SUMMARY)
    comparison = storage.read_table(COMPARISON_FILE, COMPARISON)
    agents = {name: row.objective for name, row in params.judged.items()}
    scored = {name: goal for name, goal in agents.items() if (summary["policy"] == name).any()}
    forgotten = leftovers.forgotten()
    lock, values = evidence.read_lock(forgotten), evidence.read_params_values()
    bounded = {name for name in params.scenarios if BOUNDED in problem_of(params, name).tables.jobsets.columns}
    drawn = evidence.read_pictures(storage.REPORTS / "figures")
    learned = [name for name in scored if name in params.agents]
    shown = list(figures(drawn, summary, _curves(learned), bounded))
    failed = storage.failures(params)
    absent = sorted(set(agents) - set(scored) - set(failed))
    notes = differences.warnings(absent, differences.stale(lock, values), forgotten)
    objectives = storage.read_table(OBJECTIVES_FILE, OBJECTIVES)
    schedule, why = _schedule(params, objectives, scored)
    notes += [*why, *failed.values()]
    for note in notes:
        say(f"report: {note}")
    head = evidence.head()
    page = html(
        Content(
            comparison=comparison,
            delay=storage.read_table(DELAY_FILE, DELAY),
            summary=summary,
            objectives=objectives,
            streams=storage.read_table(STREAMS_FILE, STREAM_SUMMARY),
            foreseen=storage.read_table(HINDSIGHT_FILE, HINDSIGHT_SUMMARY),
            agents=scored,
            words={name: row.policy for name, row in params.policies.items()},
            confidence=params.evaluation.confidence,
            resamples=params.evaluation.resamples,
            seed=params.seed,
            figures=shown,
            bounded=bounded,
            papers=_papers(),
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


def _curves(agents: Collection[str]) -> dict[str, pd.DataFrame]:
    return {agent: storage.read_curve(agent, "finetune") for agent in agents}


def _papers() -> list[Shown]:
    table = evidence.read_papers()
    return [] if table is None else list(papers(table, evidence.read_pictures(storage.REPORTS / "papers")))


def _schedule(params: Params, objectives: pd.DataFrame, agents: Collection[str]) -> tuple[Picture | None, list[str]]:
    """Return the picture of the best agent beside SJF, or why there is none."""
    homes = {name: params.judged[name].scenario for name in agents}
    agent = best_agent(at_home(objectives, homes), list(homes))
    if agent is None:
        return None, ["No schedule is drawn: no agent was compared with SJF."]
    scenario = params.judged[agent].scenario
    made = params.policies.get(agent)
    word = made.policy if made else str(storage.model_folder(agent, "policy"))
    load = middle_load(objectives, scenario)
    there = problem_of(params, scenario)
    try:
        pair = evidence.read_pair(agent, scenario, there.tables)
        asked = ShowRequest(None, scenario, load, str(typical_jobset(pair, agent, load)))
        drawn = draw(there.show, params, asked, [word, "sjf"], [agent, "sjf"])
    except UserError as error:
        return None, [f"No schedule is drawn: {error}."]
    halves = ". ".join(half.replace("\n", "; ") for half in drawn.halves)
    said = f"{drawn.title}; of its load, the one whose difference is nearest to the mean difference. {halves}."
    return Picture(said, f"Schedules side by side. {said}", data_uri(drawn.content)), []


def _changes(
    head: evidence.Commit | None, summary: pd.DataFrame, lock: evidence.Lock, values: Mapping[str, Json]
) -> Changes:
    if head is None:
        why = refusal() or "No git repository, or no commit in it"
        return differences.no_changes(f"{why}: there is no last run to compare with.")
    before = evidence.committed_table(SUMMARY_FILE, differences.METRIC_COLUMNS)
    old_lock, old_values = evidence.committed_lock(), evidence.committed_yaml(PARAMS_FILE)
    if before is None and not old_lock.outs:
        why = f"Commit {head.id[:10]} holds neither dvc.lock nor {SUMMARY_FILE}: there is no last run to compare with."
        return differences.no_changes(why)
    return differences.changes(
        f"{head.id[:10]} ({head.subject})",
        differences.moved(before, summary),
        list(differences.revalued(old_values, values)),
        differences.differing(differences.outputs(old_lock), differences.outputs(lock)),
    )


def _origin(head: evidence.Commit | None) -> Origin:
    versions = {"python": python_version()} | {name: metadata.version(name) for name in PACKAGES}
    if head is None:
        return Origin("", "", (), versions, evidence.has_remote())
    return Origin(head.id, head.subject, head.dirty, versions, evidence.has_remote())
