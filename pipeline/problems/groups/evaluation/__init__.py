"""What schedules of user groups were worth."""
