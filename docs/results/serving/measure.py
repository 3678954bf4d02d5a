"""Latency of `serve`: a caller sends requests at a steady rate and records the duration of each answer.

    PYTHONPATH=. python docs/results/serving/measure.py [SECONDS]

One caller sends RATE requests a second, or fewer if answers take longer. 64 jobs wait; on many machines the policy sees
all of them, and 20 jobs run on five machines. Service, policy and caller are processes of one machine. Networks are
untrained, since their weights do not affect the time. Writes `latency.csv` to this folder, a row a request; `processor`
is the mean processor time of an answer in milliseconds, service and policy together.
"""

import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import psutil

from pipeline.core import storage
from pipeline.core.config import GroupsCard, MachinesAgent, MachinesCard, Params, PoolCard, load_params
from pipeline.core.types import Json
from pipeline.interactive.machines.scheduling import park_of
from pipeline.learning.stored import weights_of
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.serving.app import application
from pipeline.serving.gateway import PolicyGateway
from pipeline.serving.guard import bound, server_of
from pipeline.serving.records import Metrics
from pipeline.stages.serve import by_name, heuristic

HERE = Path(__file__).resolve().parent
HOST, SLOTS, WAITING = "127.0.0.1", 64, 64
MACHINES, STREAMS, SHARES = "machines", "streams", "shares"
RATE = 50.0  # requests a second
LIMIT_S = 0.2


class Case(NamedTuple):
    """Policy, and whether its cluster is full."""

    words: str
    scenario: str
    policy: str  # or the agent, for an untrained network
    full: bool


CASES = {
    "sjf_full": Case("`sjf` on five machines, all full", MACHINES, "sjf", full=True),
    "sjf_starts": Case("`sjf`, half of the machines free", MACHINES, "sjf", full=False),
    "network_full": Case("deepsets, 32 hidden units, all full", MACHINES, "deepk8s_ppo", full=True),
    "network_starts": Case("the same, half free", MACHINES, "deepk8s_ppo", full=False),
    "pool_sjf": Case("`sjf` on a pooled cluster, half free", STREAMS, "sjf", full=False),
    "pool_network": Case("DeepRM3's network, half free", STREAMS, "deeprm3", full=False),
    "pool_planner": Case("`plan_sjf_align`, half free", STREAMS, "plan_sjf_align", full=False),
    "shares_network": Case("the controller's network, four groups", SHARES, "controller", full=False),
}


def wide(params: Params) -> Params:
    """Return params.yaml's parameters with a slot on machines for every waiting job."""
    row = params.machines_scenario(MACHINES).model_copy(update={"slots": SLOTS})
    return params.model_copy(update={"scenarios": {**params.scenarios, MACHINES: row}})


def network(params: Params, agent: str, folder: Path) -> str:
    """Write an agent's untrained network as a model, and return its folder."""
    made = {MACHINES: _of_machines, STREAMS: _of_pool, SHARES: _of_groups}
    scenario = next(case.scenario for case in CASES.values() if case.policy == agent)
    storage.write_model(folder, made[scenario](params, agent))
    return str(folder)


def _of_machines(params: Params, agent: str) -> storage.Model[MachinesCard]:
    from pipeline.problems.machines.agents.networks.loading import build, shape_of

    row, config = params.machines_scenario(MACHINES), params.agent_of(MachinesAgent, agent)
    park = park_of(params, MACHINES)
    card = MachinesCard(
        problem="machines",
        agent=agent,
        scenario=MACHINES,
        resources=park.resources,
        machines=len(park.capacity),
        slots=row.slots,
        dispatch=row.dispatch,
        unit=park.unit,
        objective=config.objective,
        network=config.network,
        play="greedy",
    )
    return storage.Model(card, weights_of(build(card.network, shape_of(card), seed=1)))


def _of_pool(params: Params, agent: str) -> storage.Model[PoolCard]:
    from pipeline.problems.pool.agents.networks.networks import build, card_of, cluster_of

    card = card_of(params, agent)
    return storage.Model(card, weights_of(build(card.network, cluster_of(card), seed=1)))


def _of_groups(params: Params, agent: str) -> storage.Model[GroupsCard]:
    from pipeline.problems.groups.agents.learning import model
    from pipeline.problems.groups.agents.networks.features import past
    from pipeline.problems.groups.agents.networks.q_network import build
    from pipeline.problems.groups.env.workload.source import cluster_of, source

    config, origin = params.agent(agent).network, source(params, SHARES, HERE)
    assert config.name == "q_network"
    return model(
        params,
        agent,
        build(
            config, cluster_of(origin.scenario), past({80: [origin.fresh(80, 1)]}, cluster_of(origin.scenario)), seed=1
        ),
    )


def state(case: Case, number: int) -> dict[str, Json]:
    """Return the state of a cluster for a request."""
    rng = np.random.default_rng(number)
    return {MACHINES: of_machines, STREAMS: of_pool, SHARES: of_groups}[case.scenario](case.full, rng)


def of_machines(full: bool, rng: np.random.Generator) -> dict[str, Json]:
    """Return five machines with four jobs on each, which use all or half of it."""
    held: Json = {"cpu": 2.5, "memory": 16.0} if full else {"cpu": 1.25, "memory": 8.0}
    waiting: Json = [
        {
            "id": str(k),
            "arrived": float(100 - WAITING + k),
            "duration": float(rng.lognormal(3.7, 1.2)),
            "demand": {"cpu": float(rng.choice([0.5, 1, 2, 4])), "memory": float(rng.choice([2, 4, 8, 16]))},
        }
        for k in range(WAITING)
    ]
    running: Json = [
        {"id": f"r{k}", "started": 50.0, "duration": 60.0 + k, "demand": held, "machines": [str(k % 5)]}
        for k in range(20)
    ]
    return {"now": 100.0, "waiting": waiting, "running": running}


def of_pool(full: bool, rng: np.random.Generator) -> dict[str, Json]:
    """Return a pooled cluster with five jobs that use all or half of it."""
    units = 2 if full else 1
    waiting: Json = [
        {
            "id": str(k),
            "arrived": 1000 - WAITING + k,
            "duration": int(rng.integers(1, 15)),
            "demand": {"cpu": int(rng.integers(1, 6)), "memory": int(rng.integers(1, 6))},
        }
        for k in range(WAITING)
    ]
    held: Json = {"cpu": units, "memory": units}
    running: Json = [{"id": f"r{k}", "started": 995, "duration": 8 + k, "demand": held} for k in range(5)]
    so_far: Json = {"jobs": 700, "duration": 3000, "work": {"cpu": 9000, "memory": 9000}}
    return {"now": 1000, "waiting": waiting, "running": running, "so_far": so_far}


def of_groups(full: bool, rng: np.random.Generator) -> dict[str, Json]:
    """Return four groups, whose jobs wait in three queues each."""
    waiting: Json = [
        {
            "group": k % 4,
            "queue": ("short", "medium", "long")[k % 3],
            "arrived": 900.0 + k,
            "duration": float(rng.lognormal(2.0, 1.0)),
            "demand": {"cpu": int(rng.choice([1, 2, 4, 8]))},
        }
        for k in range(WAITING)
    ]
    running: Json = [{"group": k % 4, "started": 950.0, "duration": 60.0, "demand": {"cpu": 3}} for k in range(20)]
    return {"now": 1000.0, "waiting": waiting, "running": running}


def serve(params: Params, scenario: str, policy: str, pipe: Connection) -> None:
    """Run a service until it is ended; send its port and its path."""
    found, fallback = Metrics(), problem_of(params, scenario).live.fallback
    gateway = PolicyGateway(params, scenario, lambda: by_name(policy, scenario), heuristic(fallback), LIMIT_S, found)
    gateway.wait(300.0)
    with bound(HOST, 0) as where:
        pipe.send((where.getsockname()[1], f"/v1/{gateway.live.door}"))
        server_of(application(gateway, found, None)).run(sockets=[where])


@contextmanager
def service(params: Params, scenario: str, policy: str) -> Iterator[tuple[int, str, psutil.Process]]:
    """Run a service in its own process, as the command does; yield its port, path and process."""
    context = get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=serve, args=(params, scenario, policy, its))
    process.start()
    try:
        yield *mine.recv(), psutil.Process(process.pid)
    finally:
        process.terminate()
        process.join(30)


def asked(port: int, door: str, case: Case, seconds: float) -> Iterator[dict[str, object]]:
    """Yield the outcome of each request."""
    states = [json.dumps(state(case, number)).encode() for number in range(20)]
    with closing(http.client.HTTPConnection(HOST, port, timeout=30)) as connection:
        begun = time.perf_counter()
        for number in range(int(RATE * seconds)):
            due = begun + number / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            sent = time.perf_counter()
            if sent > begun + seconds:
                return
            connection.request("POST", door, states[number % len(states)])
            said = json.loads(connection.getresponse().read())
            took = time.perf_counter() - sent
            yield {
                "second": round(sent - begun, 4),
                "milliseconds": round(1000 * took, 3),
                "starts": len(said["decision"].get("starts", ())),
                "fell_back": said["fell_back"],
            }


def processor_s(process: psutil.Process) -> float:
    """Return the processor time of a process and its children."""
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def measured(params: Params, name: str, policy: str, seconds: float) -> pd.DataFrame:
    """Return a row a request of one case; the first second is not counted."""
    case = CASES[name]
    with service(params, case.scenario, policy) as (port, door, process):
        list(asked(port, door, case, 1.0))
        before = processor_s(process)
        rows = pd.DataFrame(asked(port, door, case, seconds))
        spent = 1000 * (processor_s(process) - before) / len(rows)
    rows.insert(0, "case", name)
    rows.insert(1, "load", round(os.getloadavg()[0], 2))
    rows.insert(2, "processor", round(spent, 2))
    took = rows["milliseconds"]
    half, most = took.median(), took.quantile(0.99)
    say(f"{name}: {len(rows)} requests, p50 {half:.1f} ms, p99 {most:.1f} ms, processor {spent:.1f} ms")
    return rows


def main(seconds: float) -> None:
    """Measure all cases, and write the table."""
    params = wide(load_params())
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for name, case in CASES.items():
            is_agent = case.policy in params.agents
            policy = network(params, case.policy, Path(folder) / name) if is_agent else case.policy
            rows.append(measured(params, name, policy, seconds))
    pd.concat(rows, ignore_index=True).to_csv(HERE / "latency.csv", index=False)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
