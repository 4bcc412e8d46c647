"""Presets that the stand-in offers to katha."""
