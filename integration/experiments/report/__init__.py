"""The report: one HTML file that contains everything."""

from .document import write_report

__all__ = ["write_report"]
