"""Renderers that draw with diffusers' pipelines on this machine. Importing them loads neither torch nor diffusers."""
