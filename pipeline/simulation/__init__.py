"""Code that the simulators of all problems share: their protocol, rollouts, results."""
