"""Networks that schedule for one pooled cluster."""
