"""What a policy of many machines that looks ahead tried, and what it gained by each candidate over its base's own."""

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.config import MachinesPlan, Params
from pipeline.explaining.decisions import few
from pipeline.explaining.explain import ExplainRequest, Tried, candidates
from pipeline.lookahead.planner import Planner, SearchResult
from pipeline.problems.machines.evaluation.play import Game, game_of
from pipeline.problems.machines.lookahead.naming import planning
from pipeline.problems.machines.nouns import end_to_end
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.storage import read_jobsets, read_park
from pipeline.problems.machines.workload.park import machines_of
from pipeline.progress import ShareCallback, no_progress
from pipeline.schemas.columns import integers, numbers
from pipeline.simulation.rollout import Turn

# `machine` is the one that it would start on, as the scenario numbers them; 0 where none starts. The demand is the
# largest share of all machines that the job holds.
CANDIDATES = candidates(
    {"now": numbers(0.0)}, {"duration": numbers(0.0), "demand": numbers(0.0), "machine": integers(0)}
)


def tried(params: Params, asked: ExplainRequest, on_progress: ShareCallback) -> Tried:
    """Return what a row of `plans` tries in test jobsets of its scenario."""
    row = params.plan_of(MachinesPlan, asked.agent)
    folder = storage.jobsets_folder(row.scenario)
    park = read_park(folder)
    test = few(read_jobsets(folder, "test", park), asked.jobsets)
    game, load, number = game_of(test, machines_of(params.machines_scenario(row.scenario), park), params.seed)
    return Tried(row.base, tried_in(game, planning(params, asked.agent), on_progress), load, number)


def tried_in(game: Game, plan: Planner, on_progress: ShareCallback = no_progress) -> pd.DataFrame:
    """Return what is tried while a plan plays a game: the columns of `CANDIDATES`, with the episode for its jobset."""
    jobs, parts = end_to_end(game.episodes), list[pd.DataFrame]()
    simulator = Simulator(jobs, game.machines, np.zeros(len(jobs.arrival)))

    def watch(turn: Turn, result: SearchResult) -> None:
        parts.append(_candidates(turn, result))

    for _ in plan.play(simulator, game.key, watch):
        on_progress(simulator.placed_jobs / len(jobs.arrival))
    return pd.concat(parts, ignore_index=True)


def _candidates(turn: Turn, result: SearchResult) -> pd.DataFrame:
    """Return a row for each candidate of decisions in which several were tried."""
    view, (cost, error, count) = turn.view, result.values
    place, rank = np.nonzero(count)
    action, (_, slots, machines) = result.action[place, rank], view.legal.shape
    starts, slot = action < slots * machines, np.minimum(action // machines, slots - 1)
    total = np.maximum(view.capacity.sum(axis=1), 1)[place]
    held = (view.nodes[place, slot, None] * view.demand[place, slot] / total).max(axis=1)
    return pd.DataFrame(
        {
            "episode": turn.rows[place],
            "decision": turn.decision[place],
            "now": view.now[place],
            "rank": rank,
            "duration": np.where(starts, view.duration[place, slot], 0.0),
            "demand": np.where(starts, held, 0.0),
            "machine": np.where(starts, action % machines, 0),
            "gain": -cost[place, rank],
            "error": np.where(np.isinf(error), np.nan, error)[place, rank],
            "futures": count[place, rank],
            "taken": action == result.chosen[place],
        }
    )
