"""Figures: how contenders are compared, and what is kept of a run."""
