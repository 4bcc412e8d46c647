"""Judges over boards that exist: one evaluation, its folder, its judging and its batches."""
