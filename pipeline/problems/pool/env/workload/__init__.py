"""Where the jobs of one pooled cluster come from: recipes and logs."""
