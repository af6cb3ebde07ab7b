"""The interactive shell: keyboard to turn, outcome to screen.

In: keys. Out: turns of a session, their outcomes printed. The only room that imports prompt_toolkit. It never touches a
signal: the handlers reach the scopes, and this loop reads the scopes.
"""

from ral.repl.loop import loop

__all__ = ["loop"]
