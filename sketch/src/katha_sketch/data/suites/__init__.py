"""Rows that the stand-in adds to suites of katha: those of its own planner, renderer and matching rule."""
