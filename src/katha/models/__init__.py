"""Language models: local, behind an API, or scripted; all held to a JSON schema.

Imports: `protocols`, `configs`, `schema`.
"""
