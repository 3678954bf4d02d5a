"""What schedules of one pooled cluster were worth."""
