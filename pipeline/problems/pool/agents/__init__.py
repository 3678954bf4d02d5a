"""`pool`: networks and how they learn."""
