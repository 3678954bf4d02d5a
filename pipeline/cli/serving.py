"""The command that decides for a live cluster."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.base import Decider, app, names_in, read_params


@app.command()
def serve(
    scenario: Annotated[
        str, typer.Option(help="The scenario whose cluster it decides for.", autocompletion=names_in("scenarios"))
    ],
    policy: Decider = "champion",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on; beyond loopback it takes a token.")] = "127.0.0.1",
    token_file: Annotated[Path | None, typer.Option(help="A file with the token that callers must show.")] = None,
    limit: Annotated[
        float, typer.Option(min=1, max=60000, help="Milliseconds of a decision, before the fallback decides.")
    ] = 200.0,
    kubernetes: Annotated[
        str | None,
        typer.Option(
            help="Answer Kubernetes' scheduler, too: the API server's address; 'cluster': that of the pod it is in."
        ),
    ] = None,
    steering: Annotated[
        Path | None, typer.Option(help="Folder of a controller: the page shows what its mode shadow said last.")
    ] = None,
    arrivals_end: Annotated[
        int | None, typer.Option(help="Step before which jobs arrive, of states that do not say (default: unknown).")
    ] = None,
    load: Annotated[
        float | None, typer.Option(min=0.1, help="Percent of the cluster that arrives, of states that do not say.")
    ] = None,
) -> None:
    """Decide for a live cluster over HTTP: what waits and runs goes in, an order and who starts where comes out.

    Example: python -m pipeline serve --scenario machines --policy sjf
    """
    params = read_params()
    from pipeline.stages.serve import Listening, run

    known = {"arrivals_end": arrivals_end, "load": load}
    defaults = {name: value for name, value in known.items() if value is not None}
    run(params, scenario, policy, Listening(host, port, token_file), limit, kubernetes, steering, defaults)


@app.command()
def open_gates(
    service: Annotated[str, typer.Option(help="Where `serve` answers.")] = "http://127.0.0.1:8765",
    service_token_file: Annotated[
        Path | None, typer.Option(help="A file with the token that `serve` asks for.")
    ] = None,
    api: Annotated[
        str | None,
        typer.Option(
            help="The API server's address; else that of the pod's cluster, or of `kubectl proxy`, port 8001."
        ),
    ] = None,
    api_token_file: Annotated[Path | None, typer.Option(help="A file with the token of a service account.")] = None,
    api_ca_file: Annotated[Path | None, typer.Option(help="A file with the certificate of the API server.")] = None,
    every: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")] = 2.0,
    seconds: Annotated[float, typer.Option(min=1, max=1e9, help="That a pod runs of which nobody tells.")] = 3600.0,
    resources: Annotated[str, typer.Option(help="That the policy knows: of cpu, memory and gpu.")] = "cpu,memory",
    silence: Annotated[
        float, typer.Option(min=1, max=1e6, help="Seconds without a decision, after which all gates are opened.")
    ] = 60.0,
    held: Annotated[
        float, typer.Option(min=1, max=1e9, help="Seconds after which a gate is opened whatever the policy says.")
    ] = 3600.0,
    all: Annotated[bool, typer.Option("--all", help="Open every gate that there is, and end.")] = False,
) -> None:
    """Let pods of Kubernetes go in the policy's order: take away the gate they were created with.

    Example: python -m pipeline open-gates --service http://127.0.0.1:8765
    """
    from pipeline.kubernetes.api import Address
    from pipeline.kubernetes.gates import Patience
    from pipeline.stages.open_gates import format_of, run

    form, patience = format_of(resources, seconds), Patience(service=silence, held=held)
    run(
        Address.found(service, service_token_file),
        Address.found(api, api_token_file, api_ca_file),
        form,
        patience,
        every,
        all,
    )
