"""Metrics as pure functions: gold and predicted values in, numbers out. No model, no file, no settings."""
