"""Policies that were made elsewhere: callables, models of Stable-Baselines3 and ONNX files."""
