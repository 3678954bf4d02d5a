"""Networks that schedule for many machines."""
