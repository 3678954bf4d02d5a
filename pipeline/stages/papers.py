"""`papers`: the papers' figures from our results, next to the papers' claims."""

from pipeline import tracking
from pipeline.comparing import plots
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas.tables import PAPERS
from pipeline.papers.evidence import Evidence
from pipeline.papers.figures import figures, gathered, jobs_needed, table
from pipeline.papers.roles import Roles, roles_of
from pipeline.problems import problem_of
from pipeline.progress import say


def run(params: Params) -> None:
    """Write reports/papers/ and reports/papers.csv."""
    folder, file = storage.REPORTS / "papers", storage.REPORTS / "papers.csv"
    with tracking.stage("papers", "", params) as run:
        run.inputs(storage.TABLES)
        found = figures([evidence(params, roles) for roles in roles_of(params)])
        storage.discard(file, folder)
        for shown in found:
            if shown.drawing is not None:
                run.figure(storage.write_figure(shown.figure, plots.png(shown.drawing), "papers"))
        if all(shown.drawing is None for shown in found):  # DVC expects the folder in any case
            storage.write(folder / "none.txt", b"No figure can be drawn.\n")
        rows = table(found)
        storage.write_table(file, rows, PAPERS)
        run.figure(file)
        counted = rows["verdict"].value_counts()
        say("parts of the papers' claims: " + ", ".join(f"{word} {counted[word]}" for word in sorted(counted.index)))


def evidence(params: Params, roles: Roles) -> Evidence:
    """Return the results by which the claims about a scenario's agents are judged."""
    tables = problem_of(params, roles.scenario).tables
    results, chosen = storage.read_jobset_results(params, roles.scenario, tables), storage.read_chosen(roles.scenario)
    jobs = storage.read_job_results(params, roles.scenario, tables, *jobs_needed(roles, list(chosen.best)))
    curves = {agent: storage.read_curve(agent, "finetune") for agent in roles.agents}
    levels = {agent: chosen.over(row.finetune.loads) for agent, row in roles.agents.items()}
    return gathered(params, roles, results, jobs, curves, levels, chosen.best)
