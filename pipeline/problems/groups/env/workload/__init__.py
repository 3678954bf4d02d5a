"""Where the jobs of user groups come from: recipes and logs."""
