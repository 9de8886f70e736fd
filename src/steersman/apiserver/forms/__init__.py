"""Forms: how objects are answered: whole, only metadata, or rows of a table."""

from steersman.apiserver.forms.form import (
    Form as Form,
    ListMetadata as ListMetadata,
    ShardInfo as ShardInfo,
    WholeForm as WholeForm,
)
from steersman.apiserver.forms.negotiation import form_for as form_for
