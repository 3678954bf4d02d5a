"""One scheduling environment (Gymnasium's `Env`): its scenario, steps, and the schedule so far as text or picture."""

from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypedDict, Unpack

import gymnasium
import numpy as np
import numpy.typing as npt

from deeprm.episodes import Episodes
from deeprm.games import Game, GroupsGame, MachinesGame, Observations, PeerGame, PoolGame
from pipeline.core.config import PARAMS_FILE, Params, check_params, known_names
from pipeline.core.config.parsing import parsed
from pipeline.core.types import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.simulation.simulator import Played, spans

PEER, PEER_SLOTS = "rlscheduler", 128  # no scenario of params.yaml: the machine is the log's own; its window
WIDTH, HEIGHT, QUEUE = 480, 200, 60  # pixels; the queue is below the cluster
WHITE, WAITING = 255, (213, 94, 0)  # Okabe and Ito's vermilion
LINES = 12  # jobs of each kind in text
Scenario = str | Mapping[str, Any]  # a scenario's name in params.yaml, or changed keys of the environment's own


class Settings(TypedDict, total=False):
    """Arguments of every environment, which select its cluster, its jobs and what a policy sees."""

    scenario: Scenario | None  # name of one in ./params.yaml, or changed keys of the default one
    slots: int | None  # number of waiting jobs in an observation
    objective: str | None  # of the reward; default: slowdown, for Groups delay, for RLScheduler bounded_slowdown
    jobs: str | Path | None  # path of a log, the source of jobs
    policies_know: str | None  # durations, estimates or predictions
    obs: str  # features, or DeepRM's image (pooled clusters only)
    skip_forced: bool  # make forced moves automatically (always, except on pooled clusters)


ARGUMENTS = (*Settings.__annotations__, "load", "illegal", "render_mode", "autoreset_mode")
GAMES: dict[str, Callable[..., Game]] = {"machines": MachinesGame, "groups": GroupsGame}


def settings(
    own: str,
    scenario: Scenario | None = None,
    jobs: str | Path | None = None,
    slots: int | None = None,
    policies_know: str | None = None,
) -> tuple[Params, str]:
    """Return all parameters, and the name of an environment's scenario; see `Settings`.

    >>> params, name = settings("online", {"step_limit": 500}, slots=5)
    >>> name, params.scenario(name).slots, params.scenario(name).step_limit
    ('online', 5, 500)

    Raises:
        UserError: there is no such scenario, or a key or value is wrong.
    """
    if isinstance(scenario, str) and PARAMS_FILE.is_file():
        text, where = PARAMS_FILE.read_text(encoding="utf-8"), str(PARAMS_FILE)
    else:
        text, where = (files("deeprm") / "scenarios.yaml").read_text(encoding="utf-8"), "deeprm/scenarios.yaml"
    raw = dict(parsed(text, where))
    name = scenario if isinstance(scenario, str) else own
    rows = raw["scenarios"]
    if name not in rows:
        raise UserError(f"{where}: no scenario '{name}'; {known_names(rows, name)}")
    changes = {"slots": slots, "policies_know": policies_know}
    row = dict(rows[name]) | {key: value for key, value in changes.items() if value is not None}
    row |= scenario if isinstance(scenario, Mapping) else {}
    if jobs is not None:
        from pipeline.core.logs.registry import guess

        log = {"name": "log", "format": guess(Path(jobs)), "path": str(jobs)}
        place = raw if row["problem"] == "pool" else row
        given = place["workload"] if place.get("workload", {}).get("name") == "log" else {}
        place["workload"] = {**given, **log}
    raw["scenarios"] = {**rows, name: row}
    return check_params(raw, where), str(name)


def game_of(own: str, **chosen: Unpack[Settings]) -> Game:
    """Return the game of an environment; for arguments see `Settings`."""
    for word in sorted(chosen.keys() - Settings.__annotations__.keys()):
        raise UserError(f"no argument '{word}'; {known_names(ARGUMENTS, word)}")
    scenario, jobs, slots = chosen.get("scenario"), chosen.get("jobs"), chosen.get("slots")
    policies_know, obs, skip_forced = chosen.get("policies_know"), chosen.get("obs"), chosen.get("skip_forced", True)
    aim = {} if (objective := chosen.get("objective")) is None else {"objective": objective}
    if own == PEER:
        if scenario is not None or policies_know is not None:
            raise UserError("RLScheduler-v0: expected no scenario and no policies_know; they are the protocol's")
        if jobs is None:
            raise UserError("RLScheduler-v0: expected jobs, the path of a log in the Standard Workload Format")
        return PeerGame(settings("online")[0], Path(jobs), slots or PEER_SLOTS, **aim)
    params, name = settings(own, scenario, jobs, slots, policies_know)
    word = params.scenario(name).problem
    if word == "pool":
        return PoolGame(params, name, skip_forced=skip_forced, obs=obs or "features", **aim)
    if obs not in (None, "features"):
        raise UserError(f"obs: scenario '{name}' is of problem {word}; only pooled clusters have images, got '{obs}'")
    if not skip_forced:
        raise UserError(f"skip_forced: scenario '{name}' is of problem {word}, which always skips forced moves")
    return GAMES[word](params, name, **aim)


class SchedulingEnv(gymnasium.Env[Observations, int | IntArray]):
    """A scheduler's environment: one decision per step.

    An observation has arrays in [0, 1] by name. `info` has `action_mask` [A] (1: legal), `elapsed` (simulated time
    since the last decision), `illegal` (number of illegal actions) and, in the last step, `metrics`.

    >>> import deeprm
    >>> env = deeprm.make("deeprm/Pool-v0", load=130)
    >>> observation, info = env.reset(seed=1)
    >>> action = env.action_space.sample(info["action_mask"])
    >>> observation, reward, terminated, truncated, info = env.step(action)
    >>> sorted(info), info["action_mask"].shape
    (['action_mask', 'elapsed', 'illegal'], (11,))

    Args:
        own: default scenario of the environment's id; Gymnasium's registry supplies it.
        render_mode: ansi or rgb_array.
        load: percent; None: any of the scenario's, drawn for each episode.
        illegal: `void` counts illegal actions and takes void instead; `raise` raises ValueError.
        settings: see `Settings`.

    Raises:
        UserError: an argument is wrong, or a log cannot be read.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 5}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self,
        own: str,
        render_mode: str | None = None,
        load: int | None = None,
        illegal: str = "void",
        **settings: Unpack[Settings],
    ) -> None:
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.episodes = Episodes(game_of(own, **settings), 1, load, illegal)
        self.observation_space: Any = self.episodes.game.observation_space
        self.action_space: Any = self.episodes.game.action_space

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin an episode; options may name its `load` (percent), `jobset` and `split`; wrong ones raise UserError."""
        super().reset(seed=seed)
        self.episodes.random[0] = self.np_random
        self.episodes.begin(ONLY, options)
        return self._seen(), self._info(0.0)

    def step(self, action: int | IntArray) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Make one decision; return observation, reward, terminated, truncated (by a time limit) and info."""
        taken = self.episodes.step(ONLY, np.asarray(action)[None])
        seen, over, cut = self._seen(), bool(taken.over[0]), bool(taken.cut[0])
        info = self._info(float(taken.elapsed[0]))
        if over:
            info["metrics"] = {name: float(value[0]) for name, value in self.episodes.metrics(ONLY).items()}
        return seen, float(taken.reward[0]), over and not cut, cut, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions [A] are legal, for sb3-contrib."""
        return np.asarray(self.episodes.mask[0])

    def render(self) -> Any:
        """Return the schedule so far: text (`ansi`), or a picture [height, width, 3] of bytes (`rgb_array`)."""
        return rendered(self.episodes, 0, self.render_mode)

    def _seen(self) -> Observations:
        return {name: value[0] for name, value in self.episodes.observe().items()}

    def _info(self, elapsed: float) -> dict[str, Any]:
        mask = np.asarray(self.episodes.mask[0], dtype=np.int8)
        return {"action_mask": mask, "elapsed": elapsed, "illegal": int(self.episodes.illegal[0])}


ONLY = np.array([0])


def check_render_mode(mode: str | None) -> None:
    """Refuse an unknown render mode."""
    if mode not in (None, *SchedulingEnv.metadata["render_modes"]):
        raise UserError(f"render_mode: expected ansi or rgb_array, got '{mode}'")


def rendered(episodes: Episodes, environment: int, mode: str | None) -> Any:
    """Return one environment's schedule so far; raise UserError if it was made without a render mode."""
    if mode is None:
        raise UserError('render: expected render_mode="ansi" or "rgb_array" where the environment is made, found none')
    row, simulator = episodes.rows[[environment]], episodes.simulator
    game: Any = episodes.game
    played, (rows, _) = simulator.played(row), spans(simulator.jobs.first, row)
    nodes = getattr(simulator.jobs, "nodes", np.ones(len(simulator.jobs.arrival)))
    units = game.machines.capacity.sum(axis=0) if hasattr(game, "machines") else np.array(game.cluster.capacity)
    share = (simulator.jobs.demand[rows] * nodes[rows, None] / units).mean(axis=1)  # [J]  mean over resources
    return _text(played, share) if mode == "ansi" else _picture(played, share)


def _text(played: Played, share: FloatArray) -> str:
    now = float(played.end[0])
    there, waits = played.arrival <= now, np.isnan(played.start)
    running = ~waits & ~(played.finish <= now)
    lines = [f"time {now:g}: {running.sum()} running, {(there & waits).sum()} waiting, {(~there).sum()} to come"]
    for title, chosen in (("running", running), ("waiting", there & waits)):
        for job in np.flatnonzero(chosen)[:LINES]:
            about = f"job {job}: duration {played.duration[job]:g}, {share[job]:.0%} of the cluster"
            begun = f", since {played.start[job]:g}" if title == "running" else f", waits {now - played.arrival[job]:g}"
            lines.append(f"  {title} {about}{begun}")
    return "\n".join(lines) + "\n"


def _picture(played: Played, share: FloatArray) -> npt.NDArray[np.uint8]:
    """Return [height, width, 3]: over time, jobs stacked by their start; below, the number of waiting jobs."""
    picture = np.full((HEIGHT + QUEUE, WIDTH, 3), WHITE, dtype=np.uint8)
    since = float(played.arrival[0])
    time = np.linspace(since, max(float(played.end[0]), since + 1e-9), WIDTH)
    start, finish = (np.where(np.isnan(times), np.inf, times) for times in (played.start, played.finish))
    holds = (played.start[:, None] <= time) & (finish[:, None] > time)
    order = np.argsort(played.start, kind="stable")
    top = np.cumsum(np.where(holds, share[:, None], 0.0)[order], axis=0) * HEIGHT
    level = np.arange(HEIGHT)[:, None]
    for place, job in enumerate(order[~np.isnan(played.start[order])]):
        low = top[place] - np.where(holds[job], share[job] * HEIGHT, 0.0)
        colour = 40 + 45 * (job % 4), 80 + 30 * (job % 5), 150 + 50 * (job % 3)  # between blue and grey
        picture[:HEIGHT][(level >= low) & (level < top[place])] = colour
    picture[:HEIGHT] = picture[:HEIGHT][::-1]
    queue = ((played.arrival[:, None] <= time) & (start[:, None] > time)).sum(axis=0)
    picture[HEIGHT:][np.arange(QUEUE)[:, None] < queue * QUEUE / max(1, queue.max())] = WAITING
    return picture
