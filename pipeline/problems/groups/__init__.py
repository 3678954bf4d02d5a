"""User groups that share a cluster, and a controller that sets each group's share."""
