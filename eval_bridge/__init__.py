"""The KathaTrace protocol: questions, evidence packets, judges, matching and scores.

Imports: `models`, `store`, `stories`, `config`, `protocols`, `configs`, `registry`, `schema`.
What is done about a score is decided in `compass`.
"""
