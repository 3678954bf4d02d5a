"""The loop of a controller: read Slurm, ask the policy, set what changed, record it.

A tick that cannot be read changes nothing. After some ticks without slurmctld all is taken back first.
When the policy does not answer, all is taken back too, and Slurm's own order stands.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.problems.machines.live.state import MachinesDecision
from pipeline.progress import say
from pipeline.serving.desk import Desk
from pipeline.steering.asking import Slurm, sure
from pipeline.steering.book import Book
from pipeline.steering.canary import Canary
from pipeline.steering.competing import Pool, Queue, by_arrival, competing, why_left
from pipeline.steering.journal import VERSION, Journal, Outcomes
from pipeline.steering.planning import Decided, Drawn, changes, drawn, left_alone, look_after, some
from pipeline.steering.releasing import Releasing
from pipeline.steering.resetting import all_back, reset
from pipeline.steering.rows import OddError, Reading
from pipeline.steering.settings import Mode, Settings
from pipeline.steering.states import Start, checked, resources_of, scored, started, state_of
from pipeline.steering.status import Status
from pipeline.steering.watchdog import Watched

LOST = 3  # refused ticks in a row behind which all is taken back first


class Done(NamedTuple):
    """What a tick came to."""

    wanted: dict[int, int]  # factors that are to change
    released: dict[str, Json]  # who was let go, where to, and why if not as the policy wants
    complaint: str  # of scontrol


class Controller:
    """One controller of one Slurm."""

    def __init__(self, slurm: Slurm, desk: Desk, settings: Settings, book: Book, journal: Journal) -> None:
        self.slurm, self.desk, self.settings, self.book, self.journal = slurm, desk, settings, book, journal
        self.resources = resources_of(desk.example, desk.scenario)
        self.outcomes, self.releasing = Outcomes(), Releasing(slurm, book, settings)
        window = settings.canary if settings.mode.acts else 0
        self.canary = Canary(settings.folder, desk.scenario, window, settings.unit_s)
        self.status = Status({Mode.ORDER: "moved", Mode.RELEASE: "let go"}.get(settings.mode, "would move"))
        self._said, self._refused, self._ticks = "", 0, 0
        self._all_back = False  # of a policy that is behind
        self._orders: dict[tuple[str, ...], Sequence[int] | None] = {}
        self._draws: dict[tuple[str, ...], tuple[frozenset[int], Drawn]] = {}
        self.rng = np.random.default_rng()
        self._machines: dict[tuple[str, ...], dict[str, Json]] = {}

    def begin(self, told: dict[str, str]) -> None:
        """Write down who decides, and for whom."""
        standing, settings = self.desk.standing, self.settings
        self.journal.add(
            "begin",
            time.time(),
            version=VERSION,
            mode=str(settings.mode),
            scenario=standing.scenario,
            policy=standing.policy,
            digest=standing.digest,
            cluster=told.get("ClusterName", ""),
            slurm=told.get("SLURM_VERSION", ""),
            tick_s=settings.tick_s,
            strength=settings.strength,
            **({"held_in": list(settings.held_in)} if settings.held_in else {}),
        )
        self.journal.keep()
        if settings.mode is Mode.RELEASE:
            self.releasing.begin()

    async def go_round(self, stop: asyncio.Event, watched: Watched | None) -> None:
        """Tick until told to stop.

        Raises:
            UserError: who runs this may not set what it wants to, or its disk is full.
        """
        watching = asyncio.create_task(self.desk.watch())
        try:
            while not stop.is_set():
                began = time.monotonic()
                await self._tried()
                if watched:
                    watched.alive_still()
                    if not watched.alive:
                        raise UserError("the watchdog is gone; start again")
                self._ticks += 1
                if self._ticks == self.settings.ticks:
                    break
                left = self.settings.tick_s - (time.monotonic() - began)
                await _first(stop, max(left, 0.0))
        finally:
            watching.cancel()
            await asyncio.gather(watching, self.canary.close(), return_exceptions=True)

    async def _tried(self) -> None:
        try:
            await self._tick()
            if self._refused:
                say("steer: Slurm answers again")
            self._refused, self._said = 0, ""
            await self._judge()
        except OddError as error:
            self._refused += 1
            self.book.doubt()
            if str(error) != self._said:
                self._said = str(error)
                say(f"steer: this tick changes nothing: {self._said}")
            self.journal.add("refused", time.time(), why=self._said)
        self.journal.keep()

    @property
    def _behind(self) -> str:
        """Return why the policy does not act, where the canary took it back."""
        return self.book.behind.get(self.desk.named.digest, "")

    async def _judge(self) -> None:
        """Take the policy back when it has fallen behind the fallback."""
        named = self.desk.named
        found = None if self._behind else await self.canary.look(named.place, named.digest)
        if isinstance(found, str):
            say(f"steer: the canary has no answer: {found}")
        elif found is not None:
            self.journal.add("canary", time.time(), policy=named.policy, digest=named.digest, **found._asdict())
            if found.behind:
                self.book.behind[named.digest] = f"{named.policy} is behind {self.desk.fallback.policy}: {found.says}"
                self.book.save()
        if self._behind and not self._all_back:
            back = await asyncio.to_thread(all_back, self.slurm, self.book)
            self._all_back = True
            self.journal.add(
                "taken back", time.time(), policy=named.policy, digest=named.digest, why=self._behind, back=back
            )
            say(f"steer: {self._behind}; until another policy or --reset it only looks on{f'; {back}' if back else ''}")

    async def _tick(self) -> None:
        began = time.perf_counter()
        reading = await asyncio.to_thread(self.slurm.read)
        if self._refused >= LOST and self.book.jobs:
            count = await asyncio.to_thread(reset, self.slurm, self.book)
            self.journal.add("reset", time.time(), jobs=count)
            reading = await asyncio.to_thread(self.slurm.read)
        read = time.perf_counter()
        for number in look_after(self.book, reading):
            say(f"steer: job {number} has a priority of its own: SiteFactor does nothing there, and it is left alone")
        queue = await self._queue(reading)
        found = [await self._decided(pool, reading.now) for pool in queue.pools]
        asked = time.perf_counter()
        done = await self._done(found, reading)
        spent = (read - began, asked - read, time.perf_counter() - asked)
        self._write_down(reading, queue, found, done, spent)

    async def _queue(self, reading: Reading) -> Queue:
        if self.settings.mode is Mode.RELEASE:
            return competing(await asyncio.to_thread(self.releasing.seen, reading), {})
        return competing(reading, left_alone(self.book, reading))

    async def _done(self, found: Sequence[Decided], reading: Reading) -> Done:
        if self.settings.mode is Mode.RELEASE:
            return Done({}, *await asyncio.to_thread(self.releasing.let_go, found, reading, bool(self._behind)))
        wanted = some([changes(one, reading.factors, self.settings.strength) for one in found], self.settings.most)
        acts = self.settings.mode is Mode.ORDER and not self._behind
        return Done(wanted, {}, await self._set(wanted, reading) if acts else "")

    async def _decided(self, pool: Pool, now: float) -> Decided:
        who = (self.desk.standing.policy, self.desk.standing.digest)
        try:
            state = checked(self.desk.live.state, state_of(pool, now, self.resources, self.settings.unit_s))
            reply = await self.desk.decide(state)
            decision = MachinesDecision.model_validate(reply.decision)
            numbers, scores = scored(decision, pool)
            order: Sequence[int] | None = None if reply.fell_back else numbers
            drawn_so = None
            if order and self.settings.draw:
                order, drawn_so = self._drawn(pool, numbers, scores)
            starts, never = started(decision, pool) if self.settings.mode is Mode.RELEASE else ([], [])
        except UserError as error:  # no policy answers: held jobs go in order of arrival
            held = by_arrival(pool) if self.settings.mode is Mode.RELEASE else []
            return Decided(pool, None, *who, str(error), [Start(number, ()) for number in held])
        return Decided(pool, order, *who, reply.why, starts, never, drawn_so)

    def _drawn(
        self, pool: Pool, numbers: Sequence[int], scores: Sequence[float | None]
    ) -> tuple[Sequence[int], dict[str, float]]:
        """Return an order that is drawn, anew where other jobs wait than at the last draw."""
        there, before = frozenset(numbers), self._draws.get(pool.partitions)
        found = before[1] if before and before[0] == there else None
        if found is None:
            found = drawn(numbers, scores, self.settings.draw, self.rng)
            self._draws[pool.partitions] = (there, found)
        return found.order, {"temperature": self.settings.draw, "head": found.head, "log": found.log}

    async def _set(self, wanted: dict[int, int], reading: Reading) -> str:
        if not wanted:
            return ""
        submitted = {job.array: job.submitted for job in sorted(reading.jobs, key=lambda one: -one.number)}
        self.book.intend(wanted, submitted)
        complaint = await asyncio.to_thread(self.slurm.set, wanted)
        self.book.took(sure(wanted, complaint))
        return complaint

    def _write_down(
        self, reading: Reading, queue: Queue, found: Sequence[Decided], done: Done, spent: Sequence[float]
    ) -> None:
        for kind, gone in self.outcomes.since(reading, self.releasing.let_go_so_far):
            self.canary.ended(1)
            self.journal.add(kind, gone.end, **gone.told(self.journal.called(gone.job.user)))
        pools: list[Json] = []
        for one in found:
            pool = one.pool
            machines: dict[str, Json] = {node.name: dict(node.units) for node in pool.nodes}
            if self._machines.get(pool.partitions) != machines:  # nodes are written down where they are others
                self._machines[pool.partitions] = machines
                self.journal.add("pool", reading.now, partitions=list(pool.partitions), machines=machines)
            anew = self._orders.get(pool.partitions) != one.order
            self._orders[pool.partitions] = one.order
            lacking = self.status.lacking(one)
            pools.append(one.told(anew) | ({"without_policy": lacking} if lacking else {}))
        self.journal.add(
            "tick",
            reading.now,
            jobs=len(reading.jobs),
            left=dict(why_left(queue.left)),
            pools=pools,
            wanted={str(number): factor for number, factor in done.wanted.items()},
            **({"released": done.released} if self.settings.mode is Mode.RELEASE else {}),
            set=self.settings.mode is Mode.ORDER and not self._behind,
            complaint=" ".join(done.complaint.split())[:300],
            ms=[round(1000 * part, 1) for part in spent],
        )
        self.status.tick(found, reading, len(done.wanted) + len(done.released), done.complaint, 1000 * sum(spent))
        self.status.keep(self.settings.folder)


async def _first(stop: asyncio.Event, most_s: float) -> None:
    """Wait until told to stop, or for so long."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), most_s)
