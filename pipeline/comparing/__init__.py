"""Every policy on the same jobsets: results, paired statistics, and what is said and drawn of them."""
