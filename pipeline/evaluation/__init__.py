"""Every policy on the same jobsets: metrics, paired statistics and figures."""
