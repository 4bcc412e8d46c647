"""The Semantic Compass (Secs. B.5 and B.6): score candidates, find the weakest transition, decide on one repair.

Imports: `eval_bridge`, `composing`, `models`, `config`, `protocols`, `configs`, `registry`, `schema`.
Only a writer of moves asks a model here: `agents` has frames drawn, `eval_bridge` has judges asked.
"""
