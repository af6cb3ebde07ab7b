"""One shell's life: its scopes, its streams, its names, and the turns it runs.

In: program text. Out: an `Outcome` for each turn. This room reads no keyboard and never exits the process.
"""

from ral.session.outcome import Outcome
from ral.session.session import Session

__all__ = ["Outcome", "Session"]
