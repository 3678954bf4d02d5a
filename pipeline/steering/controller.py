"""The loop of a controller: read Slurm, ask the policy, set what changed, record it.

A tick whose reading fails changes no job. After several such ticks, the next one first undoes all changes. When the
policy does not answer, its changes are undone too, and Slurm's own order applies.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.interactive.machines.live.state import MachinesDecision
from pipeline.progress import say
from pipeline.serving.gateway import PolicyGateway
from pipeline.steering.canary import Canary
from pipeline.steering.factors import DrawnOrder, PoolDecision, changed_factors, draw_order, skipped_jobs, update_ledger
from pipeline.steering.journal import VERSION, Journal, OutcomeTracker
from pipeline.steering.ledger import Ledger
from pipeline.steering.release import Releaser
from pipeline.steering.rows import OddError, Reading
from pipeline.steering.settings import Mode, Settings, Status
from pipeline.steering.slurm import Slurm, confirmed_jobs
from pipeline.steering.states import Pool, check_state, find_pools, resources_of, scored_jobs, started_jobs, state_of
from pipeline.steering.watchdog import Watchdog, reset, undo_all

LOST = 3  # consecutive refused ticks after which all changes are undone first


class Changes(NamedTuple):
    """Changes of one tick."""

    wanted: dict[int, int]  # factors
    released: dict[str, Json]  # released jobs, their nodes, and the reason if it is not the policy
    complaint: str  # of scontrol


class Controller:
    """One controller of one Slurm cluster."""

    def __init__(
        self, slurm: Slurm, gateway: PolicyGateway, settings: Settings, ledger: Ledger, journal: Journal
    ) -> None:
        self.slurm, self.gateway, self.settings, self.ledger, self.journal = slurm, gateway, settings, ledger, journal
        self.resources = resources_of(gateway.example, gateway.scenario)
        self.outcomes, self.releaser = OutcomeTracker(journal.pseudonym), Releaser(slurm, ledger, settings)
        window = settings.canary if settings.mode.acts else 0
        self.canary = Canary(settings.folder, gateway.scenario, window, settings.unit_s)
        self.status = Status({Mode.ORDER: "moved", Mode.RELEASE: "let go"}.get(settings.mode, "would move"))
        self._said, self._refused, self._ticks = "", 0, 0
        self._undone = False  # the changes of a withdrawn policy
        self._orders: dict[tuple[str, ...], Sequence[int] | None] = {}
        self._draws: dict[tuple[str, ...], tuple[frozenset[int], DrawnOrder]] = {}
        self.rng = np.random.default_rng()
        self._machines: dict[tuple[str, ...], dict[str, Json]] = {}

    def begin(self, slurm: dict[str, str]) -> None:
        """Record the policy and Slurm's settings; in mode `release`, also the partitions that a reset must release."""
        active, settings = self.gateway.active, self.settings
        self.journal.add(
            "begin",
            time.time(),
            version=VERSION,
            mode=str(settings.mode),
            scenario=active.scenario,
            policy=active.policy,
            digest=active.digest,
            cluster=slurm.get("ClusterName", ""),
            slurm=slurm.get("SLURM_VERSION", ""),
            tick_s=settings.tick_s,
            strength=settings.strength,
            **({"held_in": list(settings.held_in)} if settings.held_in else {}),
        )
        self.journal.keep()
        if settings.mode is Mode.RELEASE:
            self.ledger.held_in = settings.held_in
            self.ledger.save()

    async def run_loop(self, stop: asyncio.Event, watchdog: Watchdog | None) -> None:
        """Tick until stopped; UserError if Slurm denies a change, the disk is full, or the watchdog is gone."""
        watching = asyncio.create_task(self.gateway.watch())
        try:
            while not stop.is_set():
                began = time.monotonic()
                await self._try_tick()
                if watchdog and not watchdog.signal_alive():
                    raise UserError("the watchdog is gone; start again")
                self._ticks += 1
                if self._ticks == self.settings.ticks:
                    break
                with contextlib.suppress(TimeoutError):
                    left = self.settings.tick_s - (time.monotonic() - began)
                    await asyncio.wait_for(stop.wait(), max(left, 0.0))
        finally:
            watching.cancel()
            await asyncio.gather(watching, self.canary.close(), return_exceptions=True)

    async def _try_tick(self) -> None:
        try:
            await self._tick()
            if self._refused:
                say("steer: Slurm answers again")
            self._refused, self._said = 0, ""
            await self._judge()
        except OddError as error:
            self._refused += 1
            self.ledger.mark_uncertain()
            if str(error) != self._said:
                self._said = str(error)
                say(f"steer: this tick changes nothing: {self._said}")
            self.journal.add("refused", time.time(), why=self._said)
        self.journal.keep()

    @property
    def _withdrawn(self) -> str:
        """Why the policy does not act, if the canary withdrew it."""
        return self.ledger.withdrawn.get(self.gateway.served.digest, "")

    async def _judge(self) -> None:
        """Withdraw the policy when it is worse than the fallback."""
        served = self.gateway.served
        found = None if self._withdrawn else await self.canary.look(served.place, served.digest)
        if isinstance(found, str):
            say(f"steer: the canary has no answer: {found}")
        elif found is not None:
            self.journal.add("canary", time.time(), policy=served.policy, digest=served.digest, **found._asdict())
            if found.worse:
                said = f"{found.windows} windows, mean regret {100 * found.regret:+.1f} %"
                why = f"{served.policy} is worse than {self.gateway.fallback.policy}: {said}"
                self.ledger.withdrawn[served.digest] = why
                self.ledger.save()
        if self._withdrawn and not self._undone:
            back = await asyncio.to_thread(undo_all, self.slurm, self.ledger)
            self._undone = True
            self.journal.add(
                "taken back", time.time(), policy=served.policy, digest=served.digest, why=self._withdrawn, back=back
            )
            more = f"; {back}" if back else ""
            say(f"steer: {self._withdrawn}; until another policy or --reset it only observes{more}")

    async def _tick(self) -> None:
        began = time.perf_counter()
        reading = await asyncio.to_thread(self.slurm.read)
        if self._refused >= LOST and self.ledger.jobs:
            count = await asyncio.to_thread(reset, self.slurm, self.ledger)
            self.journal.add("reset", time.time(), jobs=count)
            reading = await asyncio.to_thread(self.slurm.read)
        read = time.perf_counter()
        for number in update_ledger(self.ledger, reading):
            say(f"steer: job {number} has a priority of its own: SiteFactor has no effect there, and it is skipped")
        if self.settings.mode is Mode.RELEASE:
            pools, left = find_pools(await asyncio.to_thread(self.releaser.visible, reading), {})
        else:
            pools, left = find_pools(reading, skipped_jobs(self.ledger, reading))
        found = [await self._decide(pool, reading.now) for pool in pools]
        asked = time.perf_counter()
        changes = await self._apply(found, reading)
        spent = (read - began, asked - read, time.perf_counter() - asked)
        self._record(reading, list(left.values()), found, changes, spent)

    async def _decide(self, pool: Pool, now: float) -> PoolDecision:
        active, release = self.gateway.active, self.settings.mode is Mode.RELEASE
        who = (active.policy, active.digest)
        try:
            state = check_state(self.gateway.live.state, state_of(pool, now, self.resources, self.settings.unit_s))
            reply = await self.gateway.decide(state)
            decision = MachinesDecision.model_validate(reply.decision)
            numbers, scores = scored_jobs(decision, pool)
            order: Sequence[int] | None = None if reply.fell_back else numbers
            probability = None
            if order and self.settings.draw:
                there, (jobs, drawn) = frozenset(numbers), self._draws.get(pool.partitions, (None, None))
                if drawn is None or jobs != there:  # another order only once the waiting jobs have changed
                    drawn = draw_order(numbers, scores, self.settings.draw, self.rng)
                    self._draws[pool.partitions] = (there, drawn)
                order = drawn.order
                probability = {"temperature": self.settings.draw, "head": drawn.head, "log": drawn.log}
            starts, never = started_jobs(decision, pool) if release else ({}, [])
        except UserError as error:  # without any answer, held jobs are released in order of arrival
            return PoolDecision(pool, None, *who, str(error), dict.fromkeys(pool.by_arrival if release else (), ()))
        return PoolDecision(pool, order, *who, reply.why, starts, never, probability)

    async def _apply(self, found: Sequence[PoolDecision], reading: Reading) -> Changes:
        settings = self.settings
        if settings.mode is Mode.RELEASE:
            return Changes({}, *await asyncio.to_thread(self.releaser.release, found, reading, bool(self._withdrawn)))
        wanted = dict[int, int]()
        for one in found:
            wanted |= changed_factors(one, reading.factors, settings.strength)
        factors = dict(islice(wanted.items(), settings.most))  # the others follow at later ticks
        if not factors or settings.mode is not Mode.ORDER or self._withdrawn:
            return Changes(factors, {}, "")
        submitted = {job.array: job.submitted for job in sorted(reading.jobs, key=lambda one: -one.number)}
        self.ledger.record_intent(factors, submitted)
        complaint = await asyncio.to_thread(self.slurm.set, factors)
        for number in confirmed_jobs(factors, complaint):
            self.ledger.jobs[number].confirmed = True
        return Changes(factors, {}, complaint)

    def _record(
        self, reading: Reading, left: list[str], found: Sequence[PoolDecision], changes: Changes, spent: Sequence[float]
    ) -> None:
        wanted, released, complaint = changes
        let_go = {number for number, one in self.ledger.held.items() if one.let_go is not None}
        for kind, row in self.outcomes.update(reading, let_go):
            self.canary.ended += 1
            self.journal.add(kind, reading.now, **row)
        pools: list[Json] = []
        for one in found:
            pool = one.pool
            machines: dict[str, Json] = {node.name: dict(node.units) for node in pool.nodes}
            if self._machines.get(pool.partitions) != machines:  # nodes are recorded when they change
                self._machines[pool.partitions] = machines
                self.journal.add("pool", reading.now, partitions=list(pool.partitions), machines=machines)
            changed = self._orders.get(pool.partitions) != one.order
            self._orders[pool.partitions] = one.order
            lacking = self.status.count_lacking(one)
            pools.append(one.row(changed) | ({"without_policy": lacking} if lacking else {}))
        self.journal.add(
            "tick",
            reading.now,
            jobs=len(reading.jobs),
            left=dict(sorted(Counter(left).items())),
            pools=pools,
            wanted={str(number): factor for number, factor in wanted.items()},
            **({"released": released} if self.settings.mode is Mode.RELEASE else {}),
            set=self.settings.mode is Mode.ORDER and not self._withdrawn,
            complaint=" ".join(complaint.split())[:300],
            ms=[round(1000 * part, 1) for part in spent],
        )
        count = len(wanted) + len(released)
        self.status.tick(found, reading, count, complaint, 1000 * sum(spent))
        self.status.write_metrics(self.settings.folder)
