"""``steersman generate``: models from schemas, CRDs from models, RBAC, webhooks and charts from managers."""
