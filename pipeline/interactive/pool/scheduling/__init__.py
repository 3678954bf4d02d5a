"""Schedule a user's own jobs: play a policy, or plan with all of them known, and write when each starts."""
