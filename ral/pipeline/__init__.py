"""Where the language meets the operating system: commands, pipelines, streams, redirects, captures, scopes.

In: what generated code asks for (`prims`). Out: values, bytes on descriptors, `Fault` and `Cancelled`. This room parses
nothing and keeps no table of jobs: a stopped pipeline leaves it as `Parked`.
"""

from ral.pipeline.parked import Parked

__all__ = ["Parked"]
