"""Processes: children in groups, waits for them, and how they are ended. No language in here.

In: paths, bytes and descriptors. Out: `Child` with a status, `Cancelled` when a scope says so, the `Report` of a
teardown. This room never blocks without watching a scope, never waits for "any child", never joins a child's group,
never changes the process's directory, and never sets O_NONBLOCK on what it inherited.

The door imports what every command needs; `ral.process.teardown`, `.tree` and `.terminal` are imported when needed.
"""

from ral.process.group import Child, Group
from ral.process.ids import Pgid, Pid
from ral.process.mark import fresh
from ral.process.status import exit_number
from ral.process.wait import Waiter

__all__ = ["Child", "Group", "Pgid", "Pid", "Waiter", "exit_number", "fresh"]
