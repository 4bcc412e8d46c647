"""Renderers side by side on the same stories."""
