"""Agents of the problem `machines`: networks, and the algorithms that train them."""
