"""The report as one HTML page, from numbers and pictures; without access to files."""
