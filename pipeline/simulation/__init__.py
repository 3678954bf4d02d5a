"""What simulators of every problem share: how policies play in them, and who chooses."""
