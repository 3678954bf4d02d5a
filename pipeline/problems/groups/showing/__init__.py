"""One jobset under two policies, to be looked at."""
