"""Workers and parked pipelines: work that a user can name.

In: blocks to run beside the turn, jobs that stopped. Out: handles, records, notices. Every worker hangs from the session's
root scope; none outlives the session.
"""

from ral.jobs.worker import Registry, Worker

__all__ = ["Registry", "Worker"]  # the table of parked jobs is `ral.jobs.table`; batch never loads it
