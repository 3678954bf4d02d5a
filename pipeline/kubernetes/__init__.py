"""Kubernetes asks the service where a pod goes, and a controller lets pods go in the policy's order.

Tested against published contracts and a server of tests that answers as an API server does; never run on a cluster.
"""
