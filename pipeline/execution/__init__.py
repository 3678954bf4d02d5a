"""Independent tasks of a stage, carried out in this process, in others, on Ray or on Slurm: the same bytes everywhere.

Where something runs is no parameter of its result: the setting stands in the environment or in pipeline.toml, which git
does not know, and no stage depends on this package. What workers find is kept by task until the stage is done.
"""
