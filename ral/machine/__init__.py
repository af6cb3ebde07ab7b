"""Values, calls, the trampoline, and what a running program asks of the outside.

In: generated code's calls. Out: values, `Fault`s, and requests that the pipeline room answers (`Shell` carries them).
This room opens no file, starts no process and knows no signal.
"""

from ral.machine.calls import Fn, Fn0, Fn1, Fn2, Fn3, FnN, function, run
from ral.machine.values import Handle, Variant, text

__all__ = ["Fn", "Fn0", "Fn1", "Fn2", "Fn3", "FnN", "Handle", "Variant", "function", "run", "text"]
