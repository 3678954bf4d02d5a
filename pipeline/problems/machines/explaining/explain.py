"""What a policy on many machines does otherwise than SJF: tables, two figures, and a few lines."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from pipeline import storage
from pipeline.comparing.plots import LEARNED, panels
from pipeline.comparing.statistics import ALL
from pipeline.config import Params
from pipeline.explaining.decisions import few, jobsets_of, mean_of, outcomes, relative
from pipeline.explaining.explain import Explained, Explaining, ExplainRequest, Plans
from pipeline.explaining.figures import slowdowns, span, stacked
from pipeline.problems.machines.evaluation.play import game_of, score
from pipeline.problems.machines.explaining.plans import CANDIDATES, tried
from pipeline.problems.machines.explaining.recording import differences, jobs, machines, record
from pipeline.problems.machines.explaining.tables import DIFFERENCES, JOBS, MACHINES
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.policies import policy_by_name
from pipeline.problems.machines.storage import read_jobsets, read_park
from pipeline.problems.machines.workload.park import machines_of
from pipeline.progress import ProgressCallback
from pipeline.schemas import COMPARISON

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PARTS = {
    "agrees": ("as SJF", "#BBBBBB"),
    "another_machine": ("its job, another machine", LEARNED[1]),
    "another_job": ("another job", LEARNED[0]),
    "waits": ("none", LEARNED[2]),
}
LABELS = {"load": "Load (percent)", "waiting": "Jobs waiting", "free": "Percent of all resources free"}


def figures(agent: str, differences: pd.DataFrame, outcomes: pd.DataFrame) -> "dict[str, Figure]":
    """Return the figures of an agent by name."""
    return {
        "differences": _differences(agent, differences),
        "outcomes": slowdowns(f"{agent} and rules", outcomes, [agent]),
    }


def _differences(agent: str, table: pd.DataFrame) -> "Figure":
    figure, every = panels([f"{agent} beside SJF, in its own decisions", "", ""], 9.0)
    for axes, (by, label) in zip(every, LABELS.items(), strict=True):
        rows = table[table["by"] == by]
        times, rows_of = (100 if by == "free" else 1), zip(rows["from"], rows["to"], rows["decisions"], strict=True)
        names = [f"{span(times * low, times * high)}\nn = {n:,}" for low, high, n in rows_of]
        stacked(axes, names, rows, PARTS)
        axes.set_xlabel(label)
        axes.set_ylabel("Percent of decisions")
    every[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


RULES = ("fcfs", "sjf", "saf")  # that the agent is compared beside
REFERENCES = ("sjf", "saf")


def ready(params: Params, scenario: str, asked: ExplainRequest) -> Callable[[ProgressCallback], Explained]:
    """Return what tells what a policy does otherwise than SJF, in its own play of test jobsets."""
    folder, row, agent = storage.jobsets_folder(scenario), params.machines_scenario(scenario), asked.title
    park = read_park(folder)
    if asked.agent in params.agents:
        from pipeline.problems.machines.learning import LEARNING  # torch: 2 s and 250 MB that others do without

        policy = LEARNING.policies(params, asked.agent)[asked.agent]
    else:
        policy = policy_by_name(asked.agent, row, park, scenario)
    on, test = machines_of(row, park), few(read_jobsets(folder, "test", park), asked.jobsets)

    def run(on_progress: ProgressCallback) -> Explained:
        game, load, _ = game_of(test, on, params.seed)
        decisions = record(game.episodes, on, policy, game.key)
        on_progress(50, f"{len(decisions.episode)} decisions")
        policies = {agent: policy} | {name: HEURISTICS[name] for name in RULES if name != agent}
        against = outcomes(
            jobsets_of(score(policies, test, on, params.seed)), scenario, REFERENCES, params.evaluation, params.seed
        )
        tables = {
            "differences": (differences(decisions, load), DIFFERENCES),
            "jobs": (jobs(decisions, load), JOBS),
            "machines": (machines(decisions, load), MACHINES),
            "outcomes": (against, COMPARISON),
        }
        lines = summary(agent, {name: frame for name, (frame, _) in tables.items()})
        return Explained(tables, figures(agent, tables["differences"][0], against), lines)

    return run


def summary(agent: str, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return what the tables of an agent say."""
    return [
        _agreement(agent, tables["differences"]),
        _jobs(tables["jobs"]),
        _machines(tables["machines"]),
        _slowdowns(agent, tables["outcomes"]),
    ]


def _agreement(agent: str, table: pd.DataFrame) -> str:
    rows = table[table["by"] == "load"]
    same, machine, job, void = (f"{100 * mean_of(rows, name):.1f} %" for name in PARTS)
    return (
        f"{agent}: of {rows['decisions'].sum()} decisions in which a job could start, as SJF in {same}, "
        f"its job on another machine in {machine}, another job in {job}, none in {void}"
    )


def _jobs(table: pd.DataFrame) -> str:
    if not table["decisions"].sum():
        return "another job than SJF's: never"
    ratio = mean_of(table, "duration") / mean_of(table, "duration_sjf")
    return (
        f"the other job is longer ({ratio:.1f} times, by medians), smaller in {100 * mean_of(table, 'smaller'):.0f} % "
        f"and has waited longer in {100 * mean_of(table, 'waited_longer'):.0f} %"
    )


def _machines(table: pd.DataFrame) -> str:
    if not table["decisions"].sum():
        return "machines: never a choice between some that are not equally full"
    said = []
    for name in ("fullest", "emptiest"):
        taken, first, chance = (f"{100 * mean_of(table, name + of):.0f} %" for of in ("", "_first", "_by_chance"))
        said.append(f"the {name} in {taken} (the first one would be in {first}, any in {chance})")
    return f"of machines that could take the job it chooses {', '.join(said)}"


def _slowdowns(agent: str, table: pd.DataFrame) -> str:
    rows = table[(table["load"] == ALL) & (table["policy"] == agent)].set_index("against")
    said = [f"{name} {row['mean_against']:.3f}: {relative(row)}" for name, row in rows.iterrows()]
    return f"{agent}: mean slowdown {rows['mean'].iloc[0]:.3f}; against {', '.join(said)}"


EXPLAINING = Explaining(
    ready,
    Plans(tried, CANDIDATES, "time"),
    {"leaves": "an agent on many machines is explained without a tree: its actions are too many for a few leaves"},
)
