"""What a log looks like, for people."""
