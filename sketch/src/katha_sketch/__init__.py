"""The stand-in of katha: a planner, a renderer and a judge that need no model, for short English stories.

What it offers is found by entry points (see this distribution's `pyproject.toml`); `katha` never imports it.
"""
