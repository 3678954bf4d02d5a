"""A job table and a log that the pipeline can read, from what a site's own scheduler wrote of its jobs.

`dumps` reads rows of text, `importing` makes numbers of them and runs the import, `jobs` says which of them are jobs
and why the others are not, `written` writes them.
"""
