"""Story to plan: the language model's planner, the paper's ladder, and training.

Imports: `models`, `store`, `stories`, `config`, `protocols`, `configs`, `registry`, `schema`.
The order and length of a prompt for one renderer are in `composing`.
"""
