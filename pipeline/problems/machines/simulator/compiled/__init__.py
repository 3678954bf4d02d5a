"""The compiled simulator; `tests/oracles/machines.py` defines what it must do."""
