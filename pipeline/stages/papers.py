"""`papers`: the papers' figures from our results, each beside what the paper claims."""

from pipeline import storage, tracking
from pipeline.comparing import plots
from pipeline.config import Params
from pipeline.papers.cast import Cast, casts, event_casts
from pipeline.papers.event_evidence import EventEvidence, compared, gathered_events
from pipeline.papers.evidence import Evidence
from pipeline.papers.figures import event_figures, figures, gathered, jobs_needed, table
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.schemas import PAPERS


def run(params: Params) -> None:
    """Write reports/papers/ and reports/papers.csv."""
    with tracking.stage("papers", "", params) as run:
        run.inputs(storage.TABLES)
        found = figures([_evidence(params, cast) for cast in casts(params)])
        found += event_figures([_event_evidence(params, cast) for cast in event_casts(params)])
        storage.discard(storage.REPORTS / "papers.csv", storage.REPORTS / "papers")
        for shown in found:
            if shown.drawing is not None:
                run.figure(storage.write_figure(shown.figure, plots.png(shown.drawing), "papers"))
        rows = table(found)
        storage.write_table(storage.REPORTS / "papers.csv", rows, PAPERS)
        run.figure(storage.REPORTS / "papers.csv")
        counted = rows["agrees"].value_counts()
        say("claims of the papers: " + ", ".join(f"{word} {counted[word]}" for word in sorted(counted.index)))


def _evidence(params: Params, cast: Cast) -> Evidence:
    tables = problem_of(params, cast.scenario).tables
    results, chosen = storage.read_jobset_results(params, cast.scenario, tables), storage.read_chosen(cast.scenario)
    jobs = storage.read_job_results(params, cast.scenario, tables, *jobs_needed(cast, list(chosen.best)))
    curves = {agent: storage.read_curve(agent, "finetune") for agent in cast.agents}
    levels = {agent: chosen.over(row.finetune.loads) for agent, row in cast.agents.items()}
    return gathered(params, cast, results, jobs, curves, levels, chosen.best)


def _event_evidence(params: Params, cast: Cast) -> EventEvidence:
    tables = problem_of(params, cast.scenario).tables
    results, chosen = storage.read_jobset_results(params, cast.scenario, tables), storage.read_chosen(cast.scenario)
    jobs = storage.read_job_results(params, cast.scenario, tables, compared(cast), list(chosen.best))
    agents = {agent: cast.agents[agent].finetune for agent in cast.of("slowdown")}
    curves = {agent: storage.read_curve(agent, "finetune") for agent in agents}
    levels = {agent: chosen.over(part.loads) for agent, part in agents.items()}
    return gathered_events(params, cast, results, jobs, curves, levels)
