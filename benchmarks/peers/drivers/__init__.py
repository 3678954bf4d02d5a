"""Programs that run one simulator each; those of the peers run in a Python of their own and import nothing of ours."""
