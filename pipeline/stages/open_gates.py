"""`open-gates`: remove the scheduling gates of Kubernetes pods in the order of the policy that `serve` runs."""

import time
from collections.abc import Mapping

from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.kubernetes.api import Address, Api
from pipeline.kubernetes.gates import Gates, Patience
from pipeline.kubernetes.objects import UNITS, StateFormat
from pipeline.kubernetes.view import View
from pipeline.progress import say

BEGIN_S = 30.0  # limit of the API server's first answer
LOOK_S = 0.1


def format_of(resources: str, seconds: float) -> StateFormat:
    """Return the terms in which the cluster is described."""
    named, known = tuple(resources.split(",")), [name for name, _ in UNITS.values()]
    for name in named:
        if name not in known:
            raise UserError(f"--resources: expected some of {', '.join(known)}, got '{name}'")
    return StateFormat(named, seconds)


def run(
    service: Address, server: Address, form: StateFormat, patience: Patience, every_s: float, all_and_end: bool
) -> None:
    """Open gates in the policy's order, with a look at the cluster every `every_s` seconds, until the process ends.

    All state is in the pods, so a restart loses nothing. With `all_and_end`, open every gate and return.
    """
    api, asked = Api(server), Api(service)
    view = View(api)
    view.begin()

    def ask(state: Json) -> Mapping[str, Json]:
        return asked.post("/v1/decide", state)

    try:
        until = time.monotonic() + BEGIN_S
        while not view.synced:
            if time.monotonic() > until:
                raise UserError(f"{server.url}: {view.said or 'no answer'}")
            time.sleep(LOOK_S)
        gates = Gates(api, view, ask, say, form, patience)
        if all_and_end:
            say(f"open-gates: {gates.open_all()} opened")
            if left := gates.gated():
                first = f"{left[0].namespace}/{left[0].name}"
                raise UserError(f"{server.url}: {len(left)} gates are still closed, that of {first} first; try again")
            return
        known = f"{len(view.nodes.all())} nodes, {len(view.pods.all())} pods"
        say(f"open-gates: {known} of {server.url}; asking {service.url}")
        while True:
            if not gates.tick():
                time.sleep(every_s)
    finally:
        view.end()
