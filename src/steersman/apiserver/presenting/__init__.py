"""Presenting: the forms in which objects are answered: whole, as metadata alone, or as rows of a table."""

from steersman.apiserver.presenting.form import Form, ListMeta, WholeForm
from steersman.apiserver.presenting.negotiation import form_for

__all__ = ["Form", "ListMeta", "WholeForm", "form_for"]
