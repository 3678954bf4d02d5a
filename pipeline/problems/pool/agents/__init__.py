"""Agents of the problem `pool`: networks, and the algorithms that train them."""
