"""User groups that share a cluster, compiled: many episodes at once; `plain_groups` says what it must do."""
