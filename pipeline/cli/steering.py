"""The commands that act on a live cluster."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.base import Decider, app, names_in, read_params
from pipeline.errors import UserError

steering = typer.Typer(help="Let a policy order the queue of a live cluster, step by step.")
app.add_typer(steering, name="steer", no_args_is_help=True)


@steering.callback()
def clusters() -> None:
    """Let a policy order the queue of a live cluster, step by step."""


Scenario = Annotated[
    str | None, typer.Option(help="A scenario of many machines: its policies.", autocompletion=names_in("scenarios"))
]
ModeName = Annotated[
    str,
    typer.Option(
        help="observe: touch nothing; shadow: and replay both orders; order: set SiteFactor; release: let jobs go."
    ),
]
Tick = Annotated[float, typer.Option(min=1, max=3600, help="Seconds between two looks at the queue.")]
Folder = Annotated[Path, typer.Option(help="Its journal, its lock, and what it has set.")]
Strength = Annotated[
    int, typer.Option(min=2001, max=1_000_000_000, help="The highest SiteFactor, beside the site's own weights.")
]
Most = Annotated[int, typer.Option(min=1, max=100_000, help="Changes of one tick; others follow.")]
Limit = Annotated[
    float, typer.Option(min=1, max=60000, help="Milliseconds of a decision, before Slurm's own order stands.")
]
TimeUnit = Annotated[float, typer.Option(min=0.001, help="Seconds of the scenario's unit of time.")]
Ticks = Annotated[int, typer.Option(min=0, help="End after so many; 0: when told to.")]
HeldIn = Annotated[
    str, typer.Option(help="Partitions, with commas: release lets their held jobs go one by one, --reset all at once.")
]
LongestHold = Annotated[
    float, typer.Option(min=1, help="Of release: seconds behind which a job goes, whatever the policy wants.")
]
Canary = Annotated[
    int, typer.Option(min=0, max=1000, help="Jobs of a window by which a policy that acts is judged; 0: it is not.")
]
Draw = Annotated[
    float, typer.Option(min=0, help="Temperature at which orders are drawn by their scores; 0: the best first.")
]
Reset = Annotated[bool, typer.Option("--reset", help="Take back what a controller left, and end.")]


@steering.command()
def slurm(
    scenario: Scenario = None,
    policy: Decider = "champion",
    mode: ModeName = "observe",
    tick: Tick = 5.0,
    folder: Folder = Path("steering"),
    strength: Strength = 1_000_000,
    most: Most = 200,
    limit: Limit = 2000.0,
    time_unit: TimeUnit = 1.0,
    ticks: Ticks = 0,
    held_in: HeldIn = "",
    longest_hold: LongestHold = 86_400.0,
    canary: Canary = 50,
    draw: Draw = 0.0,
    reset: Reset = False,
) -> None:
    """Order the queue of the Slurm whose commands are in the path, or only say how it would be ordered.

    Example: python -m pipeline steer slurm --scenario machines --policy sjf --mode observe
    """
    from pipeline.steering.session import take_back
    from pipeline.steering.settings import Mode, Settings

    partitions = tuple(name for name in held_in.split(",") if name)
    if reset:
        take_back(folder, partitions)
        return
    if scenario is None:
        raise UserError("--scenario: expected a scenario of many machines")
    if mode not in list(Mode):
        raise UserError(f"--mode: unknown '{mode}': expected {', '.join(Mode)}")
    params = read_params()
    from pipeline.stages.steer import run

    settings = Settings(
        Mode(mode),
        folder,
        tick,
        strength,
        most,
        time_unit,
        ticks,
        draw=draw,
        held_in=partitions,
        canary=canary,
        longest_hold_s=longest_hold,
    )
    run(params, scenario, policy, limit, settings)
