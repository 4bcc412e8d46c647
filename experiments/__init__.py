"""Evaluate, ablate, compare and tune: data over one judging engine."""
