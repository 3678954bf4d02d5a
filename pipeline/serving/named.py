"""Who decides: a policy as a process of its own is told to load it."""

import json
import time
from collections import deque
from dataclasses import dataclass, field

from pydantic import BaseModel

from pipeline.config import Params


@dataclass(frozen=True)
class Named:
    """A policy by its content."""

    policy: str  # as people call it
    place: str  # a heuristic's name, or where its model lies
    digest: str
    tuned: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Brief:
    """All that the process of a policy must know."""

    params: Params
    scenario: str
    named: Named


class Reply(BaseModel):
    """A decision, who made it, and why it was not the policy if it was not."""

    version: int = 1
    scenario: str
    policy: str  # who decided
    digest: str
    fell_back: bool
    why: str = ""  # the fallback decided
    decision: dict[str, object]


def reply_of(scenario: str, by: Named, why: str, decision: bytes) -> bytes:
    """Return a Reply as JSON, of a decision that is JSON already: to read and write it again takes longer than SJF.

    >>> Reply.model_validate_json(reply_of("s", Named("sjf", "sjf", "0"), "", b'{"starts": []}')).decision
    {'starts': []}
    """
    head = {
        "version": 1,
        "scenario": scenario,
        "policy": by.policy,
        "digest": by.digest,
        "fell_back": bool(why),
        "why": why,
    }
    return json.dumps(head).encode()[:-1] + b', "decision": ' + decision + b"}"


@dataclass
class Shown:
    """What a service remembers of its decisions, for its page."""

    decisions: int = 0
    fell_back: int = 0
    at: float = 0.0  # the last decision, in seconds since 1970
    state: bytes | None = None  # that it was asked last, and what it said
    reply: bytes | None = None
    verdict: tuple[str, ...] = ()  # what a controller in mode shadow said last, if it is to be shown
    whys: deque[tuple[float, str]] = field(
        default_factory=lambda: deque(maxlen=10)
    )  # when and why the fallback decided

    def decided(self, state: bytes, reply: bytes, why: str) -> None:
        """Remember a decision."""
        self.at, self.state, self.reply = time.time(), state, reply
        self.decisions += 1
        if why:
            self.fell_back += 1
            self.whys.append((self.at, why))


class Mistake(BaseModel):
    """Why nothing was decided."""

    error: str  # one line


class Health(BaseModel):
    """Is the service there, and does its policy answer?"""

    status: str  # ok; falling back; or not following: looks at who is champion fail
    policy_ready: bool


class Standing(BaseModel):
    """Which policy decides."""

    scenario: str
    policy: str
    digest: str
    ready: bool  # does its process answer?
    fallback: str
    limit_ms: float  # of a decision, before the fallback is asked
    restarts: int  # of the policy's process, since the service began
    said: str = ""  # what went wrong, above all why a newer champion is not loaded
    looked_s: float = 0.0  # since a look at who is champion succeeded
