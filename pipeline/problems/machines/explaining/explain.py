"""What a policy on many machines does otherwise than SJF: tables, two figures, and a few lines.

There is no tree here: which job goes to which machine is too much for one of a few leaves, so `--leaves` is refused.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline import storage
from pipeline.comparing.plots import png
from pipeline.comparing.statistics import ALL, comparison
from pipeline.config import Params
from pipeline.core import IntArray, Policy
from pipeline.errors import UserError
from pipeline.problems.machines.evaluation.play import game_of, score
from pipeline.problems.machines.explaining.differences import differences, jobs, machines
from pipeline.problems.machines.explaining.figures import PARTS, figures
from pipeline.problems.machines.explaining.plans import explain_plan
from pipeline.problems.machines.explaining.recording import Decisions, record
from pipeline.problems.machines.explaining.tables import DIFFERENCES, JOBS, MACHINES
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.nouns import Jobs, Machines
from pipeline.problems.machines.policies import policy_by_name
from pipeline.problems.machines.storage import read_jobsets, read_park
from pipeline.problems.machines.workload.park import machines_of
from pipeline.problems.parts import ExplainRequest
from pipeline.progress import progress, say
from pipeline.schemas import COMPARISON

RULES = ("fcfs", "sjf", "saf")  # that the agent is compared beside
REFERENCES = ("sjf", "saf")
LEAVES = 24  # what the command asks for if nobody does

Tables = Mapping[str, tuple[pd.DataFrame, pa.DataFrameSchema]]


def explain(params: Params, asked: ExplainRequest) -> None:
    """Write reports/explain/<agent>: tables and figures; of a plan, what it tried."""
    if asked.leaves != LEAVES:
        raise UserError("--leaves: not for this problem: an agent on many machines is explained without a tree")
    if asked.agent in params.plans:
        explain_plan(params, asked.agent, asked.jobsets)
    else:
        _explain_agent(params, asked)


def _explain_agent(params: Params, asked: ExplainRequest) -> None:
    scenario, agent = asked.scenario or params.agent(asked.agent).scenario, asked.title
    folder, row = storage.jobsets_folder(scenario), params.machines_scenario(scenario)
    park = read_park(folder)
    if asked.agent in params.agents:
        from pipeline.problems.machines.learning import LEARNING  # torch: 2 s and 250 MB that others do without

        policy = LEARNING.policies(params, asked.agent)[asked.agent]
    else:
        policy = policy_by_name(asked.agent, row, park, scenario)
    on = machines_of(row, park)
    test = {load: group[: asked.jobsets] for load, group in read_jobsets(folder, "test", park).items()}
    with progress(f"explain {agent}", 2) as advance:
        decisions, load = _recorded(policy, test, on, params.seed)
        advance(1, f"{len(decisions.episode)} decisions")
        against = _outcomes(params, scenario, agent, policy, test, on)
        advance(2)
    tables: Tables = {
        "differences": (differences(decisions, load), DIFFERENCES),
        "jobs": (jobs(decisions, load), JOBS),
        "machines": (machines(decisions, load), MACHINES),
        "outcomes": (against, COMPARISON),
    }
    place = storage.REPORTS / "explain" / agent
    storage.discard(place)
    for name, (frame, schema) in tables.items():
        storage.write_table(place / f"{name}.csv", frame, schema)
    for name, figure in figures(agent, tables["differences"][0], against).items():
        storage.write(place / f"{name}.png", png(figure))
    for line in summary(agent, {name: frame for name, (frame, _) in tables.items()}):
        say(line)
    say(f"{place}: {', '.join(sorted(path.name for path in place.iterdir()))}")


def _recorded(
    policy: Policy, test: Mapping[int, Sequence[Jobs]], on: Machines, seed: int
) -> tuple[Decisions, IntArray]:
    """Return the agent's decisions, and the load of each episode; its draws are those of the tables."""
    game, load, _ = game_of(test, on, seed)
    return record(game.episodes, on, policy, game.key), load


def _outcomes(
    params: Params, scenario: str, agent: str, policy: Policy, test: Mapping[int, Sequence[Jobs]], on: Machines
) -> pd.DataFrame:
    """Return COMPARISON of the policy and some rules."""
    policies = {agent: policy} | {name: HEURISTICS[name] for name in RULES if name != agent}
    found = score(policies, test, on, params.seed)
    frame = pd.concat([done.jobsets for done in found.values()], ignore_index=True)
    against = {name: dict.fromkeys(test, name) for name in REFERENCES}
    return comparison(frame, scenario, against, params.evaluation, np.random.default_rng(params.seed))


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
    same, machine, job, void = (f"{100 * _mean(rows, name):.1f} %" for name in PARTS)
    return (
        f"{agent}: of {rows['decisions'].sum()} decisions in which a job could start, as SJF in {same}, "
        f"its job on another machine in {machine}, another job in {job}, none in {void}"
    )


def _jobs(table: pd.DataFrame) -> str:
    if not table["decisions"].sum():
        return "another job than SJF's: never"
    ratio = _mean(table, "duration") / _mean(table, "duration_sjf")
    return (
        f"the other job is longer ({ratio:.1f} times, by medians), smaller in {100 * _mean(table, 'smaller'):.0f} % "
        f"and has waited longer in {100 * _mean(table, 'waited_longer'):.0f} %"
    )


def _machines(table: pd.DataFrame) -> str:
    if not table["decisions"].sum():
        return "machines: never a choice between some that are not equally full"
    said = []
    for name in ("fullest", "emptiest"):
        taken, first, chance = (f"{100 * _mean(table, name + of):.0f} %" for of in ("", "_first", "_by_chance"))
        said.append(f"the {name} in {taken} (the first one would be in {first}, any in {chance})")
    return f"of machines that could take the job it chooses {', '.join(said)}"


def _slowdowns(agent: str, table: pd.DataFrame) -> str:
    rows = table[(table["load"] == ALL) & (table["policy"] == agent)].set_index("against")
    said = [
        f"{name} {row['mean_against']:.3f}: {100 * row['difference']:+.1f} % "
        f"({100 * row['difference_low']:+.1f} to {100 * row['difference_high']:+.1f})"
        for name, row in rows.iterrows()
    ]
    return f"{agent}: mean slowdown {rows['mean'].iloc[0]:.3f}; against {', '.join(said)}"


def _mean(table: pd.DataFrame, name: str) -> float:
    """Return the mean over decisions of a column, of the rows that have it."""
    there = table[table["decisions"] > 0]
    return float((there[name] * there["decisions"]).sum() / there["decisions"].sum())
