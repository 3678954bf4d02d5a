"""Many machines, event by event, compiled: many episodes at once; `plain_events` says what it must do."""
