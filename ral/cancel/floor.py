"""Picks the floor: the C extension where it was built, else its twin in Python; RAL_FLOOR=c or =python insists.

Everything above imports from here and can't tell the two apart, but for what the C floor alone can promise: that the
third gesture ends the process while Python can't run.
"""

import posix

_wanted = posix.environ.get(b"RAL_FLOOR", b"")
TYPE_CHECKING = False

if TYPE_CHECKING or _wanted == b"c":
    from ral import _floor as _chosen
elif _wanted == b"python":
    from ral.cancel import _twin as _chosen
else:
    try:
        from ral import _floor as _chosen
    except ImportError:
        from ral.cancel import _twin as _chosen

KIND = _chosen.KIND
Scope = _chosen.Scope
flag = _chosen.flag
acknowledge = _chosen.acknowledge
escalation_pending = _chosen.escalation_pending
gestures = _chosen.gestures
swap_foreground = _chosen.swap_foreground
swap_root = _chosen.swap_root
request_foreground_cancel = _chosen.request_foreground_cancel
request_root_cancel = _chosen.request_root_cancel
install = _chosen.install
ignored_at_start = _chosen.ignored_at_start
sigchld_fd = _chosen.sigchld_fd
set_terminal = _chosen.set_terminal
clear_terminal = _chosen.clear_terminal
spawn = _chosen.spawn
group_leave = _chosen.group_leave
groups = _chosen.groups
set_interruptible = _chosen.set_interruptible
wakeup_fd = _chosen.wakeup_fd
subreaper = _chosen.subreaper
compile_text = _chosen.compile_text
set_seam = _chosen.set_seam
at_seam = _chosen.at_seam
