"""What a site's own scheduler wrote of its jobs, made into a job table and a log that the rest reads.

`dumps` reads rows of text, `records` makes numbers of them, `jobs` says which of them are jobs and why the others are
not, `written` writes them, and `importing` does all of it.
"""
