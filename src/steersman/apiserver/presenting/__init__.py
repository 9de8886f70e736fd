"""Presenting: the forms of answered objects: whole, only metadata, or rows of a table."""

from steersman.apiserver.presenting.form import Form, ListMeta, WholeForm
from steersman.apiserver.presenting.negotiation import form_for

__all__ = ["Form", "ListMeta", "WholeForm", "form_for"]
