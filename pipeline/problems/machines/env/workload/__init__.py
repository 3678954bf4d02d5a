"""Where the jobs of many machines come from: recipes and logs."""
