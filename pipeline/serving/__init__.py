"""The service that decides for a live cluster: doors, the process in which a policy runs, and the fallback."""
