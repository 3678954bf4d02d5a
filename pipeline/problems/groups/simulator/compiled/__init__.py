"""User groups that share a cluster, compiled: many episodes at once; `reference` says what it must do."""
