"""Model formats to Tacit's source graph."""

from tacit.importers.source import Source

__all__ = ["Source"]
