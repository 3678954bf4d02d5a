"""Rules that share a cluster among user groups, and their tuning."""
