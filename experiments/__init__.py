"""Evaluate, ablate, compare and tune: data over one runner and one judging engine.

Imports: `agents`, `compass`, `planners`, `eval_bridge`, `models`, `store`, `stories`, `config`, `protocols`,
`configs`, `registry`, `schema`.
Formulas (`eval_bridge.scoring`) and steps of a single story (`agents`) do not belong here.
"""
