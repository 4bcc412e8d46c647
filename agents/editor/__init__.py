"""The board editor: what a person changes on a finished board, and what rests on it made anew.

Nothing here is a node of the state machine: `editing` is where edits come in.
"""
