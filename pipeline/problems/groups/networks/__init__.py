"""Networks that schedule for user groups."""
