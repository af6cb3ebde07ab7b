"""Fixtures that put both floors side by side."""

from floors import floor, kind, script

__all__ = ["floor", "kind", "script"]
