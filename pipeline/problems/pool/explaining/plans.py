"""What a policy that looks ahead tried, and what it gained by each candidate over its base's own action."""

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline import storage
from pipeline.config import Params
from pipeline.core import IntArray, Observation, uniform
from pipeline.problems.pool.evaluation.play import Game, game_of
from pipeline.problems.pool.explaining.stored import explain_folder
from pipeline.problems.pool.lookahead.planner import Looked, Planner
from pipeline.problems.pool.lookahead.planning import planning
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.storage import read_jobsets
from pipeline.progress import ShareCallback, no_progress, progress, say
from pipeline.schemas.columns import integers, numbers, table

# One row a candidate. Rank 0 is the base's own action; a job of 0 steps is void. The gain is what the action saves, in
# slowdown summed over the jobs that wait and those that may come, mean over futures; its error is over futures, too.
CANDIDATES = table(
    "Candidates",
    {
        "load": integers(1),
        "jobset": integers(0),
        "decision": integers(0),
        "step": integers(0),
        "rank": integers(0),
        "duration": integers(0),
        "demand": numbers(0.0),
        "gain": pa.Column("float64"),
        "error": numbers(0.0),
        "futures": integers(1),
        "taken": pa.Column("bool"),
    },
    ["load", "jobset", "decision", "rank"],
)
DIGITS = 6


def explain_plan(params: Params, plan: str, jobsets: int) -> None:
    """Write reports/explain/<plan>/candidates.csv, and say what it comes to.

    Args:
        params: all of params.yaml.
        plan: a row of `plans`.
        jobsets: test jobsets of each load to play, at most.
    """
    row = params.plan(plan)
    scenario = params.pool_scenario(row.scenario)
    test = read_jobsets(storage.jobsets_folder(row.scenario), "test", scenario.resources)
    few = {load: group[:jobsets] for load, group in test.items()}
    game, load, number = game_of(few, Cluster.of(scenario), scenario.step_limit, params.seed, masked=True)
    with progress(f"explain {plan}, percent", 100) as advance:
        frame = tried_in(game, planning(params, plan), lambda share: advance(100 * share))
    episode = frame.pop("episode").to_numpy()
    frame.insert(0, "load", load[episode])
    frame.insert(1, "jobset", number[episode])
    frame = frame.sort_values(["load", "jobset", "decision", "rank"], ignore_index=True)
    place = explain_folder(plan)
    storage.discard(place)
    storage.write_table(place / "candidates.csv", frame, CANDIDATES, DIGITS)
    for line in told(plan, row.base, frame):
        say(line)
    say(f"{place}: candidates.csv")


def tried_in(game: Game, plan: Planner, on_progress: ShareCallback = no_progress) -> pd.DataFrame:
    """Return what is tried while a plan plays a game: the columns of `CANDIDATES`, but for the episode."""
    simulator = Batched(game.jobs, game.cluster, game.step_limit, skip_forced=game.masked)
    decision, parts = np.zeros(len(game.key), dtype=np.int64), list[pd.DataFrame]()
    while len(rows := simulator.rows):
        view = simulator.observe(rows)
        looked = plan.look(view, uniform(game.key[rows], decision[rows]))
        parts.append(_candidates(rows, decision[rows], view, looked))
        simulator.step(rows, looked.chosen)
        decision[rows] += 1
        on_progress(1 - len(simulator.rows) / len(game.key))
    return pd.concat(parts, ignore_index=True)


def _candidates(rows: IntArray, decision: IntArray, view: Observation, looked: Looked) -> pd.DataFrame:
    """Return a row for each candidate of decisions in which several were tried."""
    place, rank = np.nonzero((looked.action >= 0) & (looked.worth.futures > 0)[:, None])
    action, void = looked.action[place, rank], view.duration.shape[1]
    slot = np.minimum(action, void - 1)
    share = (view.demand / view.capacity[:, 0][:, None]).max(axis=2)
    cost = looked.worth.cost
    return pd.DataFrame(
        {
            "episode": rows[place],
            "decision": decision[place],
            "step": view.now[place].astype(np.int64),
            "rank": rank,
            "duration": np.where(action < void, view.duration[place, slot], 0).astype(np.int64),
            "demand": np.where(action < void, share[place, slot], 0.0),
            "gain": cost[place, 0] - cost[place, rank],
            "error": looked.worth.error[place, rank],
            "futures": looked.worth.futures[place],
            "taken": action == looked.chosen[place],
        }
    )


def told(plan: str, base: str, frame: pd.DataFrame) -> list[str]:
    """Return what the candidates come to, in a few lines."""
    decisions = int((frame["rank"] == 0).sum())
    taken = frame[frame["taken"]]
    other = taken[taken["rank"] > 0]
    lines = [
        f"{plan}: tried {len(frame)} candidates in {decisions} decisions; took another action than {base} in "
        f"{len(other)} ({100 * len(other) / max(decisions, 1):.1f} %)"
    ]
    own = frame[frame["rank"] == 0].set_index(["load", "jobset", "decision"])["duration"]
    before = own.reindex(pd.MultiIndex.from_frame(other[["load", "jobset", "decision"]])).to_numpy()
    for words, which in (
        ("let a step pass instead of starting a job", other["duration"] == 0),
        ("started a job instead of letting a step pass", before == 0),
        ("started another job", (other["duration"] > 0) & (before > 0)),
    ):
        some = other[np.asarray(which)]
        if len(some):
            lines.append(f"{words}: {len(some)} times, expected to save {some['gain'].mean():.3f} slowdowns each")
    return lines
