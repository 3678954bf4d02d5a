"""A user's own jobs: read from a table or a log, and scheduled by any policy, for every problem."""
