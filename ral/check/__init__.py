"""Core terms to typed core terms: inference of value, row and grade types; captures inserted.

In: a `terms.Seq` and the schemes of the names in scope. Out: the same terms with `ty`, `cty` and `capture` filled in, and
the schemes of the top-level bindings. A type error is a `StaticError` with status 1. This room runs nothing.
"""

from ral.check.infer import check_program

__all__ = ["check_program"]
