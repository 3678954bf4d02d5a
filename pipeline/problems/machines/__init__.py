"""Many machines in continuous time, simulated event by event: Deepk8s, RLScheduler's protocol, real logs."""
