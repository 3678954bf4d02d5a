"""Many machines in real time, simulated event by event: Deepk8s, RLScheduler's protocol, real logs."""
