"""Judgments of people."""
