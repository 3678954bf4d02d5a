"""An extender that tells Kubernetes' scheduler the policy's node for a pod, and a controller that releases gated pods.

Tested against published contracts and a fake API server; never run on a cluster.
"""
