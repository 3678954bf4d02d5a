"""Policies that try candidate actions in the simulator before they choose one."""
