"""Commands that act on live clusters."""

from pathlib import Path
from typing import Annotated

from typer import Option

from pipeline.cli.base import Decider, ScenarioOption, app, group, read_params, scenarios
from pipeline.errors import UserError

steering = group("steer", "Let a policy order the queue of a live cluster, step by step.")


@app.command()
def serve(
    scenario: ScenarioOption,
    policy: Decider = "champion",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0: any free one.")] = 8765,
    host: Annotated[str, Option(help="Address to listen on; beyond loopback, a token is required.")] = "127.0.0.1",
    token_file: Annotated[Path | None, Option(help="File with the token that callers must send.")] = None,
    limit: Annotated[float, Option(min=1, max=60000, help="Milliseconds until the fallback decides.")] = 200.0,
    kubernetes: Annotated[
        str | None,
        Option(help="Also answer Kubernetes' scheduler; address of the API server, or 'cluster' for the pod's own."),
    ] = None,
    steering: Annotated[
        Path | None, Option(help="Folder of a controller; the page shows its verdict in mode shadow.")
    ] = None,
    arrivals_end: Annotated[int | None, Option(help="First step after all arrivals, for states that lack it.")] = None,
    load: Annotated[float | None, Option(min=0.1, help="Load in percent, for states that lack it.")] = None,
) -> None:
    """Decide for a live cluster over HTTP: a request has waiting and running jobs; the answer, order and placement.

    Example: python -m pipeline serve --scenario machines --policy sjf
    """
    params = read_params()
    from pipeline.stages.serve import run

    known = {"arrivals_end": arrivals_end, "load": load}
    defaults = {name: value for name, value in known.items() if value is not None}
    run(params, scenario, policy, limit, host, port, token_file, kubernetes, steering, defaults)


@app.command()
def open_gates(
    service: Annotated[str, Option(help="Address of `serve`.")] = "http://127.0.0.1:8765",
    service_token_file: Annotated[Path | None, Option(help="File with the token for `serve`.")] = None,
    api: Annotated[
        str | None,
        Option(help="Address of the API server (default: of the pod's cluster, or of `kubectl proxy`, port 8001)."),
    ] = None,
    api_token_file: Annotated[Path | None, Option(help="File with the token of a service account.")] = None,
    api_ca_file: Annotated[Path | None, Option(help="File with the certificate of the API server.")] = None,
    every: Annotated[float, Option(min=0.1, max=3600, help="Seconds between two looks at the cluster.")] = 2.0,
    seconds: Annotated[float, Option(min=1, max=1e9, help="Assumed run time of pods that state none.")] = 3600.0,
    resources: Annotated[str, Option(help="Resources known to the policy: of cpu, memory and gpu.")] = "cpu,memory",
    silence: Annotated[float, Option(min=1, max=1e6, help="Seconds without a decision until all gates open.")] = 60.0,
    held: Annotated[float, Option(min=1, max=1e9, help="Seconds after which a gate is opened in any case.")] = 3600.0,
    all: Annotated[bool, Option("--all", help="Open every gate and exit.")] = False,
) -> None:
    """Release pods of Kubernetes in the policy's order by removing their scheduling gates.

    Example: python -m pipeline open-gates --service http://127.0.0.1:8765
    """
    from pipeline.kubernetes import gates
    from pipeline.kubernetes.api import Address

    words, patience = gates.format_of(resources, seconds), gates.Patience(service=silence, held=held)
    server = Address.found(api, api_token_file, api_ca_file)
    gates.open_gates(Address.found(service, service_token_file), server, words, patience, every, all)


@steering.command()
def slurm(
    scenario: Annotated[str | None, Option(help="A scenario with machines.", autocompletion=scenarios)] = None,
    policy: Decider = "champion",
    mode: Annotated[
        str, Option(help="observe (changes nothing), shadow (also replays), order (sets SiteFactor), release.")
    ] = "observe",
    tick: Annotated[float, Option(min=1, max=3600, help="Seconds between two looks at the queue.")] = 5.0,
    folder: Annotated[Path, Option(help="Folder for the journal, the lock, and the values set.")] = Path("steering"),
    strength: Annotated[
        int, Option(min=2001, max=1_000_000_000, help="The highest SiteFactor; see the site's weights.")
    ] = 1_000_000,
    most: Annotated[int, Option(min=1, max=100_000, help="Changes in one tick; the others follow later.")] = 200,
    limit: Annotated[float, Option(min=1, max=60000, help="Milliseconds until Slurm's own order applies.")] = 2000.0,
    time_unit: Annotated[float, Option(min=0.001, help="Seconds of the scenario's unit of time.")] = 1.0,
    ticks: Annotated[int, Option(min=0, help="Stop after N ticks; 0: at a signal.")] = 0,
    held_in: Annotated[str, Option(help="Partitions, with commas, whose held jobs release and --reset free.")] = "",
    longest_hold: Annotated[float, Option(min=1, help="Seconds after which mode release frees any job.")] = 86_400.0,
    canary: Annotated[
        int, Option(min=0, max=1000, help="Jobs in a window that judges an acting policy; 0: none.")
    ] = 50,
    draw: Annotated[float, Option(min=0, help="Temperature of orders drawn by their scores; 0: best first.")] = 0.0,
    reset: Annotated[bool, Option("--reset", help="Undo what a controller has set, and exit.")] = False,
) -> None:
    """Order the queue of the Slurm cluster whose commands are in the path, or only report the order.

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
    from pipeline.stages.serve import steer

    pace = (tick, strength, most, time_unit, ticks)
    settings = Settings(Mode(mode), folder, *pace, draw, partitions, canary, longest_hold)
    steer(params, scenario, policy, limit, settings)
