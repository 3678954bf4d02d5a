"""What a policy that looks ahead tried, and what it gained by each candidate over its base's own action."""

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.config import Params, PoolPlan
from pipeline.explaining.decisions import few
from pipeline.explaining.explain import ExplainRequest, Tried, candidates
from pipeline.lookahead.planner import Planner, SearchResult
from pipeline.problems.pool.evaluation.play import Game, game_of
from pipeline.problems.pool.lookahead.naming import planning
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.storage import read_jobsets
from pipeline.progress import ShareCallback, no_progress
from pipeline.schemas.columns import integers, numbers
from pipeline.simulation.rollout import Turn

CANDIDATES = candidates({"step": integers(0)}, {"duration": integers(0), "demand": numbers(0.0)})


def tried(params: Params, asked: ExplainRequest, on_progress: ShareCallback) -> Tried:
    """Return what a row of `plans` tries in test jobsets of its scenario."""
    row = params.plan_of(PoolPlan, asked.agent)
    scenario = params.pool_scenario(row.scenario)
    test = few(read_jobsets(storage.jobsets_folder(row.scenario), "test", scenario.resources), asked.jobsets)
    game, load, number = game_of(test, Cluster.of(scenario), scenario.step_limit, params.seed, masked=True)
    return Tried(row.base, tried_in(game, planning(params, asked.agent), on_progress), load, number)


def tried_in(game: Game, plan: Planner, on_progress: ShareCallback = no_progress) -> pd.DataFrame:
    """Return what is tried while a plan plays a game: the columns of `CANDIDATES`, but for the episode."""
    simulator = Batched(game.jobs, game.cluster, game.step_limit, skip_forced=game.masked)
    parts = list[pd.DataFrame]()

    def watch(turn: Turn, result: SearchResult) -> None:
        parts.append(_candidates(turn, result))

    for left in plan.play(simulator, game.key, watch):
        on_progress(1 - left / len(game.key))
    return pd.concat(parts, ignore_index=True)


def _candidates(turn: Turn, result: SearchResult) -> pd.DataFrame:
    """Return a row for each candidate of decisions in which several were tried."""
    view, (cost, error, futures) = turn.view, result.values
    place, rank = np.nonzero(futures)
    action, void = result.action[place, rank], view.duration.shape[1]
    slot = np.minimum(action, void - 1)
    share = (view.demand / view.capacity[:, 0][:, None]).max(axis=2)
    return pd.DataFrame(
        {
            "episode": turn.rows[place],
            "decision": turn.decision[place],
            "step": view.now[place].astype(np.int64),
            "rank": rank,
            "duration": np.where(action < void, view.duration[place, slot], 0).astype(np.int64),
            "demand": np.where(action < void, share[place, slot], 0.0),
            "gain": cost[place, 0] - cost[place, rank],
            "error": error[place, rank],
            "futures": futures[place, rank],
            "taken": action == result.chosen[place],
        }
    )
