"""`groups`: networks and how they learn."""
