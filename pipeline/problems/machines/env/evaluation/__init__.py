"""What schedules of many machines were worth."""
