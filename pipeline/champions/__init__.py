"""The champion of each scenario: the line that names it, the gate before it, and the watch over it."""
