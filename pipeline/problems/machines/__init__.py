"""Many machines in real time, event by event: Deepk8s, RLScheduler's protocol, real logs."""
