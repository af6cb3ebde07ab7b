"""From how a process ended to an exit number."""


def exit_number(status: int) -> int:
    """The number a shell reports: the exit code itself (>= 0), or 128 + n for death by signal n (given as -n)."""
    return status if status >= 0 else 128 - status
