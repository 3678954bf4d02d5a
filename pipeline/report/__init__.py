"""The report as one HTML page: numbers and pictures in, text out; nothing is read or written here."""
