"""``steersman generate``: models from schemas, CRDs from models, RBAC and webhooks from managers."""
