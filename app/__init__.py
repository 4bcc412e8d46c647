"""What people touch: the command line, the desk, the reports, exports, MCP, and the functions of the public API.

Imports: `experiments`, `agents`, `compass`, `planners`, `renderers`, `eval_bridge`, `composing`, `intake`, `models`,
`store`, `stories`, `config`, `protocols`, `configs`, `registry`, `schema`.
Read words and files, call the rooms below, print and draw pages. What is computed is computed below.
"""
