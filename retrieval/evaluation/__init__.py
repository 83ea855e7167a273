"""Measuring a ranking: judgements, metrics, intervals, comparison, report."""
