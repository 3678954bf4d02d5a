"""One module per DVC stage: a table of contents."""
