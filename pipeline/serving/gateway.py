"""Gateway to the active policy: asks it for a decision within a time limit, and the fallback if it does not answer.

A new policy takes over when its process answers; the previous one finishes its queue. A process that ends is restarted.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.interactive.live.deciding import RefusedError
from pipeline.problems import problem_of
from pipeline.serving.records import ActivePolicy, Metrics, RecentDecisions, Reply, ServedPolicy, reply_of
from pipeline.serving.worker import DECIDED, FIRST_S, REFUSED, SMOOTH, WAITING, Worker

LOOK_S = 0.2  # between two looks at the policy's process
CHAMPION_S = 1.0  # between two looks for a new champion
BEGIN_S = 120.0  # limit for the start of a process
PATIENCE = 20  # limits after which a process that does not answer is ended,
LEAST_PATIENCE_S = 2.0  # and at least this long
NEAR = 0.6  # share of the limit: a state that waited longer shows that too many are being answered at once
AGAIN_S = (0.0, 1.0, 5.0, 30.0)  # before a process is restarted: first, second, ...


class BusyError(Exception):
    """Neither the policy nor the fallback could answer in time."""


def completed(raw: bytes, defaults: Mapping[str, float]) -> bytes:
    """Add missing fields to a state; anything but a JSON object stays unchanged, and is refused where it is read.

    >>> completed(b'{"now": 3}', {"load": 70.0})
    b'{"load":70.0,"now":3}'
    """
    try:
        found = from_json(raw) if defaults else None
    except ValueError:
        return raw
    return to_json({**defaults, **found}) if isinstance(found, dict) else raw


class PolicyGateway:
    """The active policy of one scenario, and its fallback."""

    def __init__(
        self,
        params: Params,
        scenario: str,
        look: Callable[[], ServedPolicy],
        fallback: ServedPolicy,
        limit_s: float,
        metrics: Metrics,
        defaults: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Start the policy; `defaults` fill in missing fields of states. UserError: states cannot have such a field."""
        self.params, self.scenario, self.fallback, self.limit_s = params, scenario, fallback, limit_s
        self.metrics = metrics
        self.live, self._defaults = problem_of(params, scenario).live, dict(defaults)
        live = self.live
        for field in self._defaults:
            if field not in live.state.model_fields:
                raise UserError(f"--{field.replace('_', '-')}: states of scenario '{scenario}' have no {field}")
        self.example = live.example(params, scenario)
        self.said, self.restarts, self.recent = "", 0, RecentDecisions()
        self._looked = time.monotonic()  # when a look for a new champion last succeeded
        self._wrong: dict[str, str] = {}  # error of each step of `watch`, until it succeeds
        self._look, self._failed, self._ended = look, "", 0.0
        self._fallback = live.decider(params, scenario, fallback.place, fallback.tuned)
        self._fallback(live.state.model_validate(self.example))  # compiles and reads files at first use
        self._thread = ThreadPoolExecutor(1)  # the fallback draws random numbers: one state at a time
        self._falling, self._fallback_s = 0, FIRST_S  # waiting states, and the time of one
        self._answering, self._most = 0, float(WAITING)  # states being answered, and their limit
        self._worker = Worker(params, scenario, look())
        self._next: Worker | None = None
        self._row = 0  # times in a row that the process has ended

    @property
    def active(self) -> ActivePolicy:
        """The active policy."""
        named = self.served
        return ActivePolicy(
            scenario=self.scenario,
            policy=named.policy,
            digest=named.digest,
            ready=self._worker.ready.is_set() and self._worker.alive,
            fallback=self.fallback.policy,
            limit_ms=1000 * self.limit_s,
            restarts=self.restarts,
            said="; ".join(line for line in (self.said, *self._wrong.values()) if line),
            looked_s=round(time.monotonic() - self._looked, 1),
        )

    @property
    def served(self) -> ServedPolicy:
        """The active policy, and its place."""
        return self._worker.served

    def wait(self, most_s: float = BEGIN_S) -> None:
        """Wait until the policy answers; if it does not, end the processes and raise a UserError."""
        until = time.monotonic() + most_s
        while not self._worker.ready.wait(LOOK_S):
            if self._worker.over.is_set() or time.monotonic() > until:
                why = self._worker.said or "its process did not begin"
                self.close()
                raise UserError(f"{self.served.policy}: {why}")

    async def decide(self, state: BaseModel) -> Reply:
        """Return a decision by the policy, or one by the fallback, marked as such; raises like `answer`."""
        return Reply.model_validate_json(await self.answer(state.model_dump_json().encode()))

    async def answer(self, raw: bytes) -> bytes:
        """Return a Reply to a state, both as JSON; the state is parsed here only for the fallback.

        Raises ValidationError: the state is not valid. UserError: it contradicts itself. BusyError: too many requests
        wait.
        """
        if self._answering >= self._most:
            raise BusyError(f"{self._answering} states are answered already; ask again later")
        raw, worker, began = completed(raw, self._defaults), self._worker, time.perf_counter()
        self._answering += 1
        try:
            decision, why = await self._ask(worker, raw), ""
            self._row = 0
            waited = time.perf_counter() - began - worker.state_s
            self._most = max(1, 0.9 * self._most) if waited > NEAR * self.limit_s else min(WAITING, self._most + 0.1)
        except RefusedError as refused:
            decision, why = await self._by_fallback(raw), str(refused)
        finally:
            self._answering -= 1
        named = self.fallback if why else worker.served
        self.metrics.count_decision(time.perf_counter() - began, why)
        reply = reply_of(self.scenario, named, why, decision)
        self.recent.record(raw, reply, why)
        return reply

    async def _ask(self, worker: Worker, raw: bytes) -> bytes:
        if not worker.ready.is_set():
            raise RefusedError("the policy's process has not begun")
        answer = asyncio.wrap_future(worker.ask(raw, self.limit_s))
        try:
            kind, decision = await asyncio.wait_for(answer, self.limit_s)
        except TimeoutError:
            raise RefusedError(f"no answer within {1000 * self.limit_s:g} ms") from None
        if kind != DECIDED:
            how = "the policy refuses" if kind == REFUSED else "the policy failed"
            raise RefusedError(f"{how}: {decision.decode(errors='replace')}")
        try:
            self.live.decision.model_validate_json(decision)
        except ValidationError:
            raise RefusedError("the policy's answer is none") from None
        return decision

    async def _by_fallback(self, raw: bytes) -> bytes:
        if self._falling and (self._falling + 1) * self._fallback_s > self.limit_s:
            raise BusyError(f"{self._falling} states wait for the fallback, too; ask again later")
        self._falling += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._fall_back, raw)
        finally:
            self._falling -= 1

    def _fall_back(self, raw: bytes) -> bytes:
        began = time.perf_counter()
        try:
            decision: bytes = self._fallback(self.live.state.model_validate_json(raw)).model_dump_json().encode()
        except RefusedError as refused:
            raise UserError(str(refused)) from None
        self._fallback_s += SMOOTH * (time.perf_counter() - began - self._fallback_s)
        return decision

    async def watch(self) -> None:
        """Supervise the policy's process and follow the champion, until cancelled; no error ends it."""
        self._looked = time.monotonic()  # the start may have taken long
        keep = (self._take_over, self._look_after, self._begin_again)
        await asyncio.gather(self._repeat(CHAMPION_S, self._look_for_another), self._repeat(LOOK_S, *keep))

    async def _repeat(self, pause_s: float, *steps: Callable[[], Awaitable[None] | None]) -> None:
        while True:
            await asyncio.sleep(pause_s)
            for step in steps:
                try:
                    if waits := step():
                        await waits
                    self._wrong.pop(step.__name__, None)
                except Exception as error:
                    mine = isinstance(error, UserError)
                    self._wrong[step.__name__] = f"{error}" if mine else f"{type(error).__name__}: {error}"
                    self.metrics.failed.inc()

    async def _look_for_another(self) -> None:
        named = await asyncio.to_thread(self._look)
        self._looked = time.monotonic()
        now = self._next or self._worker
        if named.digest in (now.served.digest, self._failed):
            return
        if self._next:
            self._next.end(now=True)
        self._next, self.said = Worker(self.params, self.scenario, named), ""

    def _take_over(self) -> None:
        if self._next is None:
            return
        if self._next.ready.is_set():
            before, self._worker, self._next = self._worker, self._next, None
            before.end(now=False)
            self.said, self._failed = "", ""
            self.metrics.reloads.inc()
        elif self._next.over.is_set():
            named = self._next.served
            self.said, self._failed, self._next = f"{named.policy}: {self._next.said}", named.digest, None

    def _look_after(self) -> None:
        for worker in (self._worker, *([self._next] if self._next else [])):
            since = worker.busy_since
            patience = max(PATIENCE * self.limit_s, LEAST_PATIENCE_S) if worker.ready.is_set() else BEGIN_S
            if not worker.alive:
                worker.end(now=False)  # its thread may wait forever otherwise
            elif since is not None and time.monotonic() - since > patience and not worker.over.is_set():
                worker.end(now=True)

    def _begin_again(self) -> None:
        if not self._worker.over.is_set():
            self._ended = 0.0
            return
        now = time.monotonic()
        self._ended = self._ended or now
        if now - self._ended < AGAIN_S[min(self._row, len(AGAIN_S) - 1)]:
            return
        self._row, self.said = self._row + 1, self._worker.said
        self._worker, self._ended = Worker(self.params, self.scenario, self.served), 0.0
        self.restarts += 1
        self.metrics.restarts.inc()

    def close(self) -> None:
        """End the processes."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        for worker in (self._worker, self._next):
            if worker:
                worker.end(now=True)
