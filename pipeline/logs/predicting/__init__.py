"""Run times of a log's jobs, predicted from what was known when each was submitted."""
