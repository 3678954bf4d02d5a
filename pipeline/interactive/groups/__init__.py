"""`groups`: commands that people use, and decisions for live clusters."""
