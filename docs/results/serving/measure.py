"""How long an answer of `serve` takes: a caller asks at a steady pace, and writes how long each answer took.

    PYTHONPATH=. python docs/results/serving/measure.py [SECONDS]

One caller, RATE requests a second, as many as it can if answers take longer; 64 jobs wait, all in the policy's slots,
and 20 run on five machines. The service, its policy's process and the caller are processes of one machine. Networks are
untrained: how long they take does not depend on their weights. Writes `latency.csv` beside it: a row a request.
"""

import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.config import DeepSets, MachinesCard, Params, load_params
from pipeline.core import Json
from pipeline.progress import say
from pipeline.serving.app import application
from pipeline.serving.desk import Desk
from pipeline.serving.listening import bound, server_of
from pipeline.serving.measured import Measured
from pipeline.stages.serve import by_name, heuristic

HERE = Path(__file__).resolve().parent
HOST, SCENARIO, SLOTS = "127.0.0.1", "machines", 64
RATE = 50.0  # requests a second
LIMIT_S = 0.2
NETWORK = "network"


class Case(NamedTuple):
    """A policy, and a cluster that is full or not."""

    policy: str
    full: bool


CASES = {
    "sjf_full": Case("sjf", full=True),
    "sjf_starts": Case("sjf", full=False),
    "network_full": Case(NETWORK, full=True),
    "network_starts": Case(NETWORK, full=False),
}


def wide(params: Params) -> Params:
    """Return params.yaml's with as many slots as jobs wait."""
    row = params.machines_scenario(SCENARIO)
    return params.model_copy(update={"scenarios": {SCENARIO: row.model_copy(update={"slots": SLOTS})}})


def network(params: Params, folder: Path) -> str:
    """Write an untrained network as a model, and return where."""
    from pipeline.learning.stored import weights_of
    from pipeline.problems.machines.networks.loading import build, shape_of

    row = params.machines_scenario(SCENARIO)
    card = MachinesCard(
        problem="machines",
        agent="untrained",
        scenario=SCENARIO,
        resources=("cpu", "memory"),
        machines=5,
        slots=row.slots,
        dispatch=row.dispatch,
        unit=1.0,
        objective="slowdown",
        network=DeepSets(name="deepsets", hidden=32),
        play="greedy",
    )
    storage.write_model(folder, storage.Model(card, weights_of(build(card.network, shape_of(card), seed=1))))
    return str(folder)


def state(full: bool, number: int) -> dict[str, Json]:
    """Return a cluster of five machines with four jobs on each, that leave nothing or half of it."""
    rng = np.random.default_rng(number)
    held = {"cpu": 2.5, "memory": 16.0} if full else {"cpu": 1.25, "memory": 8.0}
    waiting = [
        {
            "id": str(k),
            "arrived": float(100 - SLOTS + k),
            "duration": float(rng.lognormal(3.7, 1.2)),
            "demand": {"cpu": float(rng.choice([0.5, 1, 2, 4])), "memory": float(rng.choice([2, 4, 8, 16]))},
        }
        for k in range(SLOTS)
    ]
    running = [
        {"id": f"r{k}", "started": 50.0, "duration": 60.0 + k, "demand": dict(held), "machines": [str(k % 5)]}
        for k in range(20)
    ]
    return {"now": 100.0, "waiting": waiting, "running": running}


def serve(params: Params, policy: str, pipe: Connection) -> None:
    """Let a service listen until it is ended; tell its port."""
    found = Measured()
    desk = Desk(params, SCENARIO, lambda: by_name(policy, SCENARIO), heuristic("fcfs"), LIMIT_S, found)
    if not desk.wait(300.0):
        raise SystemExit(f"{policy}: {desk.why}")
    with bound(HOST, 0) as where:
        pipe.send(where.getsockname()[1])
        server_of(application(desk, found, None)).run(sockets=[where])


@contextmanager
def service(params: Params, policy: str) -> Iterator[int]:
    """Let a service listen in a process of its own, as the command does; yield its port."""
    context = get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=serve, args=(params, policy, its))
    process.start()
    try:
        yield mine.recv()
    finally:
        process.terminate()
        process.join(30)


def asked(port: int, full: bool, seconds: float) -> Iterator[dict[str, object]]:
    """Yield what became of each request."""
    states = [json.dumps(state(full, number)).encode() for number in range(20)]
    with closing(http.client.HTTPConnection(HOST, port, timeout=30)) as connection:
        begun = time.perf_counter()
        for number in range(int(RATE * seconds)):
            due = begun + number / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            sent = time.perf_counter()
            if sent > begun + seconds:
                return
            connection.request("POST", "/v1/decide", states[number % len(states)])
            said = json.loads(connection.getresponse().read())
            took = time.perf_counter() - sent
            yield {
                "second": round(sent - begun, 4),
                "milliseconds": round(1000 * took, 3),
                "starts": len(said["decision"]["starts"]),
                "fell_back": said["fell_back"],
            }


def measured(params: Params, name: str, policy: str, seconds: float, show: Callable[[str], None]) -> pd.DataFrame:
    """Return a row a request of one case, behind a second that is not counted."""
    with service(params, policy) as port:
        list(asked(port, CASES[name].full, 1.0))
        rows = pd.DataFrame(asked(port, CASES[name].full, seconds))
    rows.insert(0, "case", name)
    rows.insert(1, "load", round(os.getloadavg()[0], 2))
    took = rows["milliseconds"]
    show(f"{name}: {len(rows)} requests, p50 {took.median():.1f} ms, p99 {took.quantile(0.99):.1f} ms")
    return rows


def main(seconds: float) -> None:
    """Measure all cases, and write the table."""
    params = wide(load_params())
    with tempfile.TemporaryDirectory() as folder:
        places = {NETWORK: network(params, Path(folder) / "model")}
        rows = [
            measured(params, name, places.get(case.policy, case.policy), seconds, say) for name, case in CASES.items()
        ]
    pd.concat(rows, ignore_index=True).to_csv(HERE / "latency.csv", index=False)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
