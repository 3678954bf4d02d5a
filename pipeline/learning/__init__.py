"""What learning algorithms of every problem share."""
