"""The standard words: their types, their code, and a line about each.

In: calls from generated code. Out: values, bytes on the shell's streams, `Fault`s. A word's module is imported when a program
first mentions the word. This room starts no process of its own.
"""

from ral.builtins.catalogue import CATALOGUE, load, signature

__all__ = ["CATALOGUE", "load", "signature"]
