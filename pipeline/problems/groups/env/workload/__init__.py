"""Sources of the jobs of user groups: recipes and logs."""
