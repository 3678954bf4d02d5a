"""Sources of the jobs of many machines: recipes and logs."""
