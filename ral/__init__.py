"""ral: a typed shell that you can always stop.

The rooms below are packages with a door each; docs/architecture.md draws the map. This file imports nothing, so that
every start pays only for what it uses.
"""

__version__ = "0.1.0"
