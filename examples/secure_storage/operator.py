"""The SecureStorage operator with patterns: four states and a clean-up; conditions and finalizer come with them.

Run the cloud with `python -m examples.secure_storage.cloud`, the operator with
`steersman run examples.secure_storage.operator --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "storage.example.com/v1", "kind": "SecureStorage", "metadata": {"name": "photos"},
                             "spec": {"size": 5, "retention": 90}}'
    kubectl get securestorages --watch
    kubectl get secret photos -o jsonpath='{.data.bucket}' | base64 -d
    curl -X PUT localhost:8900/weather -d '{"slow": 3, "silent": 1, "down": 0.3}'     # it still converges
    kubectl delete securestorage photos      # policy, key, bucket
    curl localhost:8900/journal

bare.py is the same operator without patterns.
"""

from examples.secure_storage.outside import Buckets, Keys, Policies, Thing, Things
from examples.secure_storage.types import SecureStorage

from steersman import Done, Manager, Next, ObjectMeta, Outputs, StateMachine, Wait, finalizer, state
from steersman.kinds.core_v1 import Secret
from steersman.patterns import Absent, External, Present


class Storage(StateMachine[SecureStorage], children=(Secret,)):
    def __init__(self, *, look_again: float) -> None:
        def external(api: Things, name: str) -> External[SecureStorage, Thing]:
            # late: this cloud performs a request within a second, or never
            return External(api, name=name, timeout=10.0, late=1.0, repeatable_create=True, look_again=look_again)

        self.buckets = external(Buckets(), "bucket")
        self.keys = external(Keys(), "key")
        self.policies = external(Policies(), "policy")

    @state(condition="BucketReady")
    async def bucket(self, storage: SecureStorage, _: Outputs) -> Next | Wait:
        """Ensure the bucket."""
        match self.buckets.ensure(storage):
            case Present(found):
                storage.ensure_status().bucket = found["id"]
                return Next()
            case pending:
                return pending.wait

    @state(condition="KeyReady")
    async def key(self, storage: SecureStorage, _: Outputs) -> Next | Wait:
        """Ensure the encryption key of the bucket."""
        match self.keys.ensure(storage):
            case Present(found):
                storage.ensure_status().key = found["id"]
                return Next()
            case pending:
                return pending.wait

    @state(condition="PolicyReady")
    async def policy(self, storage: SecureStorage, _: Outputs) -> Next | Wait:
        """Ensure the policy: who may delete, and when."""
        match self.policies.ensure(storage):
            case Present(found):
                storage.ensure_status().policy = found["id"]
                return Next()
            case pending:
                return pending.wait

    @state(condition="CoordinatesReady")
    async def coordinates(self, storage: SecureStorage, out: Outputs) -> Done:
        """Declare the Secret that holds the ids."""
        status = storage.ensure_status()
        assert status.bucket is not None
        assert status.key is not None
        meta = ObjectMeta(name=storage.key.name, namespace=storage.key.namespace)
        out.apply(Secret(metadata=meta, string_data={"bucket": status.bucket, "key": status.key}))
        return Done()

    @finalizer
    async def clean_up(self, storage: SecureStorage, _: Outputs) -> Done | Wait:
        """Remove what refers to something before it."""
        for things in (self.policies, self.keys, self.buckets):
            match things.remove(storage):
                case Absent():
                    continue
                case pending:
                    return pending.wait
        return Done()


def make(*, look_again: float = 60.0) -> Manager:
    """Return a manager with its controller."""
    manager = Manager(name="secure-storage")
    manager.add(Storage(look_again=look_again))
    return manager


manager = make()
