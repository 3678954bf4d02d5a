"""A user's own jobs: read from a table or a log, and scheduled by any policy; the same for every problem."""
