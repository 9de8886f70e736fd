"""Presenting: the forms of answered objects: whole, only metadata, or rows of a table."""

from steersman.apiserver.presenting.form import Form as Form, ListMeta as ListMeta, WholeForm as WholeForm
from steersman.apiserver.presenting.negotiation import form_for as form_for
