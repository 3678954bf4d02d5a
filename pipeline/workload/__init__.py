"""Where jobs come from: synthetic recipes and real logs."""
