"""The schedule so far: as text, or as a picture of the jobs' shares of the cluster."""

from typing import Any

import numpy as np
import numpy.typing as npt

from deeprm.episodes import Episodes
from pipeline.core.types import FloatArray
from pipeline.errors import UserError
from pipeline.simulation.simulator import Played, spans

WIDTH, HEIGHT, QUEUE = 480, 200, 60  # pixels; the queue is below the cluster
WHITE, WAITING = 255, (213, 94, 0)  # Okabe and Ito's vermilion
LINES = 12  # jobs of each kind in text


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
