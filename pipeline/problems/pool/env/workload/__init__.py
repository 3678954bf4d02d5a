"""Sources of the jobs of one pooled cluster: recipes and logs."""
