"""Speed of our simulators and of other cluster simulators, on the same jobs and under the same rules."""
