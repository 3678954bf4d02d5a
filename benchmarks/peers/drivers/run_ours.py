"""Run one of our simulators on a queue: `python -m benchmarks.peers.drivers.run_ours NAME SWF RULE`."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.peers.workload import QueueJobs, read_swf
from pipeline.core.types import ANY_KIND, CompiledRule, FloatArray
from pipeline.problems.machines.env.nouns import BLOCKING, EASY_DYNAMIC, Jobs, Machines, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.simulator.rules import players
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.simulation.rollout import play
from pipeline.sites.quotas import quotas_of
from pipeline.sites.replay import LINEAR, Backfill, Order, Queue, replay
from tests.oracles.machines import PlainSimulator

ONE = 1000  # thousandths of a processor
DISPATCH = {"fcfs": BLOCKING, "easy": EASY_DYNAMIC}
SLOTS = 1  # waiting jobs that the policy sees; order of arrival needs the first
LEAST_S = 0.2  # processor time: the queue is repeated until then
NO_KEY = np.zeros(1, dtype=np.uint64)
Starts = Callable[[], FloatArray]


def _queue(jobs: QueueJobs, machines: int, rule: str) -> tuple[Jobs, Machines]:
    count, run = len(jobs.submit), jobs.run.astype(float)
    rows = Jobs(jobs.submit.astype(float), run, run, np.full((count, 1), ONE), jobs.size, np.full(count, ANY_KIND))
    kind = np.zeros(machines, dtype=np.int64)
    return rows, Machines(np.full((machines, 1), ONE), kind, SLOTS, DISPATCH[rule], 16.0, 1e15)


def compiled(jobs: QueueJobs, machines: int, rule: str) -> Starts:
    """Return the compiled simulator of many machines."""
    rows, cluster = _queue(jobs, machines, rule)
    episode = end_to_end([rows])

    def work() -> FloatArray:
        simulator = Simulator(episode, cluster, np.ones(len(rows.arrival)))
        simulator.play(simulator.rows, players([CompiledRule("fcfs")], NO_KEY), np.iinfo(np.int64).max)
        return simulator.placed().start

    return work


def reference(jobs: QueueJobs, machines: int, rule: str) -> Starts:
    """Return the reference simulator of many machines, in plain Python."""
    rows, cluster = _queue(jobs, machines, rule)

    def work() -> FloatArray:
        simulator = PlainSimulator(rows, cluster, np.ones(len(rows.arrival)))
        play(simulator, HEURISTICS["fcfs"], NO_KEY)
        return simulator.placed().start

    return work


def replayed(jobs: QueueJobs, machines: int, pooled: bool) -> Starts:
    """Return the compiled replay of a site's queue, with each machine apart or with one pool of processors."""
    count, run = len(jobs.submit), jobs.run.astype(float)
    one, none = np.ones(count, np.int64), np.zeros(count, np.int64)
    capacity = np.array([[machines * ONE]]) if pooled else np.full((machines, 1), ONE)
    queue = Queue(
        jobs.submit.astype(float), run, run, one if pooled else jobs.size,
        (jobs.size if pooled else one)[:, None] * ONE, jobs.size.astype(float), none, none.astype(float), none,
        capacity, np.ones((1, len(capacity)), np.bool_), none[:1], np.ones(1),
        **quotas_of((), none, none, [("", "")])._asdict(),
        whole=not pooled,
    )  # fmt: skip
    return lambda: replay(queue, Order(LINEAR, np.zeros(count), slope=1.0), Backfill(), queue.submit, np.arange(count))


def starts(name: str, jobs: QueueJobs, machines: int, rule: str) -> Starts:
    """Return a simulator that is ready to run."""
    if name in ("replay", "replay_pooled"):
        return replayed(jobs, machines, name == "replay_pooled")
    return {"compiled": compiled, "reference": reference}[name](jobs, machines, rule)


def main() -> None:
    """Run a few jobs to compile or load, then the queue."""
    name, path, rule = sys.argv[1:]
    jobs, machines = read_swf(Path(path))
    starts(name, QueueJobs(*(column[:20] for column in jobs)), machines, rule)()
    work = starts(name, jobs, machines, rule)
    began, used, times, cpu = time.perf_counter(), time.process_time(), 0, 0.0
    while cpu < LEAST_S:
        start, times = work(), times + 1
        cpu = time.process_time() - used
    wall = (time.perf_counter() - began) / times
    result = {"jobs": len(start), "decisions": len(start), "wall_s": wall, "cpu_s": cpu / times}
    print("RESULT", json.dumps(result | {"mean": float((start - jobs.submit).mean())}))


if __name__ == "__main__":
    main()
