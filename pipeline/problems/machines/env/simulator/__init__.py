"""Many machines, event by event: a compiled simulator of many episodes at once."""
