"""Plan to frames: vector drawings, diffusion, shared attention, image services, folders.

Imports: `composing`, `models`, `config`, `protocols`, `configs`, `schema`.
A renderer adds nothing of meaning to a plan, and knows of no judge.
"""
