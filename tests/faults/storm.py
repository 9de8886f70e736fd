"""A storm of real refusals: the server's own priority and fairness lets nothing of the operator through."""

from contextlib import asynccontextmanager

from faults.workload import OPERATOR

from steersman import ObjectMeta
from steersman.kinds.flowcontrol_v1 import (
    FlowSchema,
    FlowSchemaSpec,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    PolicyRulesWithSubjects,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationReference,
    PriorityLevelConfigurationSpec,
    ResourcePolicyRule,
    Subject,
    UserSubject,
)

_LEVEL = PriorityLevelConfiguration(
    metadata=ObjectMeta(name="storm"),
    spec=PriorityLevelConfigurationSpec(
        type="Limited",
        limited=LimitedPriorityLevelConfiguration(
            nominal_concurrency_shares=0,
            lendable_percent=0,
            borrowing_limit_percent=0,
            limit_response=LimitResponse(type="Reject"),
        ),
    ),
)
_EVERYTHING = ResourcePolicyRule(api_groups=["*"], resources=["*"], verbs=["*"], namespaces=["*"], cluster_scope=True)
_SCHEMA = FlowSchema(
    metadata=ObjectMeta(name="storm"),
    spec=FlowSchemaSpec(
        matching_precedence=2,  # 1 is that of administrators
        priority_level_configuration=PriorityLevelConfigurationReference(name="storm"),
        rules=[
            PolicyRulesWithSubjects(
                subjects=[Subject(kind="User", user=UserSubject(name=OPERATOR))], resource_rules=[_EVERYTHING]
            )
        ],
    ),
)


@asynccontextmanager
async def storm(client):
    """Refuse every request of the operator with 429 for the length of a block."""
    await client.create(_LEVEL)
    await client.create(_SCHEMA)
    try:
        yield
    finally:
        await client.delete(FlowSchema, "storm")
        await client.delete(PriorityLevelConfiguration, "storm")
