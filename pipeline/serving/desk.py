"""The desk: asks the policy within a time limit, and the fallback where it does not answer.

A new policy takes over when its process answers; the one before finishes what it was handed. Who ends is begun again.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.problems.asking import RefusedError, live_of
from pipeline.serving.measured import Measured
from pipeline.serving.named import Brief, Decided, Named, Reply, Shown, Standing, reply_of
from pipeline.serving.worker import DECIDED, REFUSED, Worker

LOOK_S = 0.2  # between two looks at the policy's process
CHAMPION_S = 1.0  # between two looks at who is champion
BEGIN_S = 120.0  # in which a process must have begun
PATIENCE = 20  # limits after which a process that does not answer is ended,
LEAST_PATIENCE_S = 2.0  # and at least so long
AGAIN_S = (0.0, 1.0, 5.0, 30.0)  # before a process that ended is begun again: first, second, ...


class Desk:
    """Who decides in one scenario."""

    def __init__(
        self, params: Params, scenario: str, look: Callable[[], Named], fallback: Named, limit_s: float, found: Measured
    ) -> None:
        self.params, self.scenario, self.fallback, self.limit_s, self.found = params, scenario, fallback, limit_s, found
        self.live = live = live_of(params, scenario)
        self.example = live.example(params, scenario)
        self.said, self.restarts, self.shown = "", 0, Shown()
        self._look, self._failed, self._ended = look, "", 0.0
        self._fallback = live.decider(params, scenario, fallback.place, fallback.tuned)
        self._alone = threading.Lock()  # the fallback draws, too
        self._worker = self._begin(look())
        self._next: Worker | None = None
        self._row = 0  # ends one after another

    @property
    def standing(self) -> Standing:
        """Return which policy decides."""
        named = self._worker.brief.named
        return Standing(
            scenario=self.scenario,
            policy=named.policy,
            digest=named.digest,
            ready=self._worker.ready.is_set(),
            fallback=self.fallback.policy,
            limit_ms=1000 * self.limit_s,
            restarts=self.restarts,
            said=self.said,
        )

    @property
    def named(self) -> Named:
        """Return the policy that decides, and where it lies."""
        return self._worker.brief.named

    @property
    def pid(self) -> int:
        """Return the number of the policy's process."""
        return self._worker.pid

    def wait(self, most_s: float) -> bool:
        """Wait until the policy answers; return whether it does."""
        until = time.monotonic() + most_s
        while not self._worker.over.is_set() and time.monotonic() < until:
            if self._worker.ready.wait(LOOK_S):
                return True
        return False

    @property
    def why(self) -> str:
        """Return why the policy's process is over."""
        return self._worker.said

    async def decide(self, state: BaseModel) -> Reply:
        """Return a decision, by the policy or, marked, by the fallback.

        Raises:
            UserError: the state contradicts itself.
        """
        return Reply.model_validate_json(await self.answer(state.model_dump_json().encode()))

    async def answer(self, raw: bytes) -> bytes:
        """Return a Reply to a state, both as JSON: by the policy or, marked, by the fallback.

        The policy's process reads the state; here that is only done where it has no answer.

        Raises:
            ValidationError: it is no state.
            UserError: the state contradicts itself.
        """
        worker, began = self._worker, time.perf_counter()
        try:
            decision, why = await self._asked(worker, raw), ""
            self._row = 0
        except RefusedError as refused:
            state = self.live.state.model_validate_json(raw)
            decision, why = await asyncio.to_thread(self._by_fallback, state), str(refused)
        named = self.fallback if why else worker.brief.named
        self.found.decided(time.perf_counter() - began, why)
        reply = reply_of(Decided(self.scenario, named.policy, named.digest, why), decision)
        self.shown.decided(raw, reply, why)
        return reply

    async def _asked(self, worker: Worker, raw: bytes) -> bytes:
        if not worker.ready.is_set():
            raise RefusedError("the policy's process has not begun")
        answer = asyncio.wrap_future(worker.ask(raw))
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

    def _by_fallback(self, state: BaseModel) -> bytes:
        with self._alone:
            try:
                return self._fallback(state).model_dump_json().encode()
            except RefusedError as refused:
                raise UserError(str(refused)) from None

    def _begin(self, named: Named) -> Worker:
        return Worker(Brief(self.params, self.scenario, named))

    async def watch(self) -> None:
        """Look after the policy's process, and at who is champion, until cancelled."""
        looked = 0.0
        while True:
            await asyncio.sleep(LOOK_S)
            if time.monotonic() - looked > CHAMPION_S:
                await asyncio.to_thread(self._look_for_another)
                looked = time.monotonic()
            self._take_over()
            self._look_after(self._worker)
            if self._next:
                self._look_after(self._next)
            self._begin_again()

    def _look_for_another(self) -> None:
        try:
            named = self._look()
        except UserError as error:
            self.said = str(error)
            return
        now = self._next or self._worker
        if named.digest in (now.brief.named.digest, self._failed):
            return
        if self._next:
            self._next.end(now=True)
        self._next, self.said = self._begin(named), ""

    def _take_over(self) -> None:
        if self._next is None:
            return
        if self._next.ready.is_set():
            before, self._worker, self._next = self._worker, self._next, None
            before.end(now=False)
            self.said, self._failed = "", ""
            self.found.reloaded()
        elif self._next.over.is_set():
            named = self._next.brief.named
            self.said, self._failed, self._next = f"{named.policy}: {self._next.said}", named.digest, None

    def _look_after(self, worker: Worker) -> None:
        if not worker.alive:
            worker.end(now=False)  # it may have waited for nothing
            return
        since = worker.busy_since
        patience = max(PATIENCE * self.limit_s, LEAST_PATIENCE_S) if worker.ready.is_set() else BEGIN_S
        if since is not None and time.monotonic() - since > patience and not worker.over.is_set():
            worker.end(now=True)

    def _begin_again(self) -> None:
        if not self._worker.over.is_set():
            self._ended = 0.0
            return
        now = time.monotonic()
        self._ended = self._ended or now
        if now - self._ended < AGAIN_S[min(self._row, len(AGAIN_S) - 1)]:
            return
        self.said = self._worker.said
        self._worker, self._ended = self._begin(replace(self._worker.brief.named)), 0.0
        self._row, self.restarts = self._row + 1, self.restarts + 1
        self.found.began_again()

    def close(self) -> None:
        """End the processes."""
        for worker in (self._worker, self._next):
            if worker:
                worker.end(now=True)
