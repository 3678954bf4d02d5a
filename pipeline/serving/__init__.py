"""The service that decides for a live cluster: endpoints, the process of a policy, and the fallback."""
