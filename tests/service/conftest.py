"""The small network of the fault tests serves here too."""

from faults.conftest import Job, job

__all__ = ["Job", "job"]
