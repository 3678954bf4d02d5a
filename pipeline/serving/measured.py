"""What the service counts, in the words of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
# What made the fallback decide, by how the line begins; the line itself would make a series of each state.
CAUSES = {
    "no answer": "slow",
    "the policy refuses": "refused",
    "the policy failed": "failed",
    "the policy's answer": "failed",
    "the policy's process": "starting",
}


class Measured:
    """Counters of one service."""

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

    def decided(self, seconds: float, why: str) -> None:
        """Count a decision; `why` the fallback made it, if it did."""
        self._seconds.observe(seconds)
        self._decisions.labels("fallback" if why else "policy").inc()
        if why:
            cause = next((word for begins, word in CAUSES.items() if why.startswith(begins)), "busy")
            self._fallbacks.labels(cause).inc()

    def refused(self, status: int) -> None:
        """Count a request without a decision."""
        self._refused.labels(str(status)).inc()

    def told(self, ready: bool, looked_s: float = 0.0) -> bytes:
        """Return all of it, as Prometheus reads it."""
        self._ready.set(ready)
        self._looked.set(looked_s)
        return generate_latest(self._all)
