"""Served policies, their replies, and the metrics and recent decisions of a service."""

import json
import time
from collections import deque
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
# Cause of the fallback's decision, by the beginning of the reason; whole reasons would make a series for each state.
CAUSES = {
    "no answer": "slow",
    "the policy refuses": "refused",
    "the policy failed": "failed",
    "the policy's answer": "failed",
    "the policy's process": "starting",
}


@dataclass(frozen=True)
class ServedPolicy:
    """A policy, identified by its content."""

    policy: str  # display name
    place: str  # a heuristic's name, or the path of a model
    digest: str
    tuned: dict[str, float] = field(default_factory=dict)


class Reply(BaseModel):
    """A decision, the policy that made it, and the reason if that was the fallback."""

    version: int = 1
    scenario: str
    policy: str
    digest: str
    fell_back: bool
    why: str = ""  # reason for the fallback
    decision: dict[str, object]


def reply_of(scenario: str, by: ServedPolicy, why: str, decision: bytes) -> bytes:
    """Return a Reply as JSON around a decision in JSON, because parsing and writing it again takes longer than SJF.

    >>> Reply.model_validate_json(reply_of("s", ServedPolicy("sjf", "sjf", "0"), "", b'{"starts": []}')).decision
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
class RecentDecisions:
    """Decisions that a service remembers for its page."""

    decisions: int = 0
    fell_back: int = 0
    at: float = 0.0  # time of the last decision, in seconds since 1970
    state: bytes | None = None  # last state, and the reply
    reply: bytes | None = None
    verdict: tuple[str, ...] = ()  # last lines of a controller in mode shadow, if they are to be shown
    whys: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=10))  # times and reasons of fallbacks

    def record(self, state: bytes, reply: bytes, why: str) -> None:
        """Remember a decision."""
        self.at, self.state, self.reply = time.time(), state, reply
        self.decisions += 1
        if why:
            self.fell_back += 1
            self.whys.append((self.at, why))


class Mistake(BaseModel):
    """Reason for a refused request."""

    error: str  # one line


class Health(BaseModel):
    """Is the service up, and does its policy answer?"""

    status: str  # ok; falling back; or not following: looks for a new champion fail
    policy_ready: bool


class ActivePolicy(BaseModel):
    """The active policy."""

    scenario: str
    policy: str
    digest: str
    ready: bool  # does its process answer?
    fallback: str
    limit_ms: float  # of a decision, before the fallback is asked
    restarts: int  # of the policy's process, since the service began
    said: str = ""  # errors, above all why a newer champion is not loaded
    looked_s: float = 0.0  # since a look for a new champion last succeeded


class Metrics:
    """Counters of one service, for Prometheus."""

    def __init__(self) -> None:
        self._all = every = CollectorRegistry()
        self._decisions = Counter("deeprm_decisions", "Decisions, by who decided.", ["by"], registry=every)
        self._fallbacks = Counter("deeprm_fallbacks", "The fallback's decisions, by why.", ["cause"], registry=every)
        self._refused = Counter("deeprm_refused_requests", "Requests without a decision.", ["status"], registry=every)
        said = "From the state to the decision."
        self._seconds = Histogram("deeprm_decision_seconds", said, buckets=SECONDS, registry=every)
        self.reloads = Counter("deeprm_policy_reloads", "Policies that took over from another.", registry=every)
        said = "Times that the policy's process was begun again."
        self.restarts = Counter("deeprm_policy_restarts", said, registry=every)
        self._ready = Gauge("deeprm_policy_ready", "Does the policy's process answer?", registry=every)
        said = "Seconds since a look at who is champion succeeded."
        self._looked = Gauge("deeprm_policy_looked_seconds", said, registry=every)
        self.failed = Counter("deeprm_watch_errors", "Failed looks at the policy or its process.", registry=every)

    def count_decision(self, seconds: float, why: str) -> None:
        """Count a decision; `why`: reason for the fallback, or empty."""
        self._seconds.observe(seconds)
        self._decisions.labels("fallback" if why else "policy").inc()
        if why:
            cause = next((word for begins, word in CAUSES.items() if why.startswith(begins)), "busy")
            self._fallbacks.labels(cause).inc()

    def count_refusal(self, status: int) -> None:
        """Count a request without a decision."""
        self._refused.labels(str(status)).inc()

    def text(self, ready: bool, looked_s: float = 0.0) -> bytes:
        """Return all metrics in the format of Prometheus."""
        self._ready.set(ready)
        self._looked.set(looked_s)
        return generate_latest(self._all)
