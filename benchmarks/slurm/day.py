"""The command that replays a busy day of a site on a real slurmctld, before and after the settings of its advice.

    python -m pipeline site LOG --name ours && dvc repro advise@ours
    python -m pipeline advise ours --slurm settings
    nice -n -10 python -m benchmarks.slurm.day LOG --settings settings --out day.csv.gz

Needs root, Slurm, SlurmDBD, MariaDB and libfaketime, and affects no other Slurm on this host.
"""

from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from benchmarks.slurm.accelerated import LINES, SITE
from benchmarks.slurm.busy_day import BusyDay, busiest_day, on_nodes, replayed
from benchmarks.slurm.day_figures import AFTER, BEFORE, DAY, NODES, PLAYERS, POOL, SLURM, effects, lines
from benchmarks.slurm.day_played import played, rows_of
from pipeline.cli.base import AsJson, answer
from pipeline.cli.ending import main
from pipeline.core.storage.files import check_out, read_table, write_table
from pipeline.core.types import THOUSANDTHS
from pipeline.errors import UserError
from pipeline.progress import progress

DIGITS, SEED = 10, 0
app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def day(
    log: Annotated[Path, typer.Argument(help="Log in the Standard Workload Format, of one pool of 240 processors.")],
    settings: Annotated[Path, typer.Option(help="Folder that `advise --slurm` wrote.")],
    out: Annotated[Path, typer.Option(help="Table to write or extend (.csv, .csv.gz): a row for each job and run.")],
    policy: Annotated[str, typer.Option(help="Order of these settings, for the replays.")] = "limit_8h",
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Runs before and after the settings, in turn.")] = 10,
    speed: Annotated[float, typer.Option(min=1, max=1000, help="Seconds of Slurm's clock in a real one.")] = 400.0,
    as_json: AsJson = False,
) -> None:
    """Replay the busiest day of a log's test period on a real slurmctld, before and after the settings.

    Finished runs are kept: after an interruption the same command continues.

    Example: python -m benchmarks.slurm.day LOG.swf.gz --settings settings --out day.csv.gz
    """
    if not (settings / LINES).exists():
        raise UserError(f"{settings}: expected {LINES} of `advise --slurm`, found none")
    busy = busiest_day(log)
    size, ours = int(busy.queue.capacity[:, 0].sum()) // THOUSANDTHS, SITE.nodes * SITE.cpus
    if size != ours:
        raise UserError(f"{log}: expected a cluster of {ours} processors, found {size}")
    found = extended(busy, settings, out, policy, repeats, speed)
    data = {player: [one._asdict() for one in effects(found, player)] for player in PLAYERS}
    answer(lines(found), data, as_json)


def extended(day: BusyDay, settings: Path, out: Path, policy: str, repeats: int, speed: float) -> pd.DataFrame:
    """Play what the table lacks, write it after each run, and return it."""
    check_out(out)
    found = _continued(out, day, speed) if out.exists() else _replays(day, policy)
    done = set(found.loc[found["player"] == SLURM, ["repeat", "setting"]].itertuples(index=False, name=None))
    with progress("play the day on Slurm, runs", 2 * repeats, len(done)) as advance:
        for repeat, setting in product(range(repeats), (BEFORE, AFTER)):
            if (repeat, setting) in done:
                continue
            advance(len(done), f"{setting}, repeat {repeat + 1}")
            run = played(day, SITE, speed, settings if setting == AFTER else None)
            named = _named(run, SLURM, setting, repeat, speed)
            found = pd.concat([found, named], ignore_index=True)
            write_table(out, found, DAY, DIGITS)
            done.add((repeat, setting))
            advance(len(done))
    return found


def _continued(out: Path, day: BusyDay, speed: float) -> pd.DataFrame:
    """Return the table of earlier runs; UserError if they are those of another day or speed."""
    found = read_table(out, DAY)
    jobs = set(found.loc[found["part"] == "day", "job"])
    speeds = set(found.loc[found["player"] == SLURM, "speed"])
    if jobs != set(day.job[day.running : day.wanted].tolist()) or speeds - {speed}:
        raise UserError(f"{out}: expected runs of day {day.number} at speed {speed:g}, found others: name another file")
    return found


def _replays(day: BusyDay, policy: str) -> pd.DataFrame:
    place, parts, orders = np.arange(day.wanted), [], {BEFORE: "fcfs", AFTER: policy}
    days = {POOL: day, NODES: on_nodes(day, SITE)}
    for player, setting in product(days, orders):
        for repeat, (submit, start) in enumerate(replayed(days[player], orders[setting], SEED)):
            times = {"place": place, "submit_s": submit, "start_s": start, "end_s": start + day.queue.run[: day.wanted]}
            parts.append(_named(rows_of(day, pd.DataFrame(times)), player, setting, repeat, 1.0))
    return pd.concat(parts, ignore_index=True)


def _named(rows: pd.DataFrame, player: str, setting: str, repeat: int, speed: float) -> pd.DataFrame:
    return rows.assign(player=player, setting=setting, repeat=repeat, speed=speed)[list(DAY.columns)]


if __name__ == "__main__":
    main(app)
