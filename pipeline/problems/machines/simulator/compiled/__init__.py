"""Many machines, event by event, compiled: many episodes at once; `reference` says what it must do."""
