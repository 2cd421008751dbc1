"""The report: one HTML file with everything in it."""

from .document import write_report

__all__ = ["write_report"]
