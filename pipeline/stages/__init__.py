"""One module per DVC stage or other command, each a table of contents: read, call, log, write."""
