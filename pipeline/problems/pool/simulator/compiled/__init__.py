"""The pooled cluster, compiled: many episodes in lock step; `reference` says what it must do."""
