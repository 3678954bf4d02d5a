"""Compiled simulator of the pooled cluster; it agrees step for step with the reference in `tests/oracles/pool.py`."""
