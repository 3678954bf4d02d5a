"""What a learned policy of many machines does otherwise than SJF."""
