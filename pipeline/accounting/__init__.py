"""Import of Slurm's accounting: a job table and a log that the pipeline can read.

`dumps` reads rows of text, `slurm_import` converts them and runs the import, `jobs` selects those that are jobs,
`output` makes the files.
"""
