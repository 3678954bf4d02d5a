"""`machines`: networks and how they learn."""
