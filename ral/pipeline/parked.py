"""A job that stopped leaves its turn as an exception."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ral.pipeline.job import Job


class Parked(BaseException):
    """The foreground job stopped: the turn ends with it. Not visible to `try`."""

    def __init__(self, job: "Job") -> None:
        super().__init__("parked")
        self.job = job
