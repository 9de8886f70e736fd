"""kubectl apply, as a client does it and as the server does, and kubectl diff."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "deployment",
        """
        kubectl apply -f deployment.yaml
        kubectl apply -f deployment.yaml
        $ sed 's/replicas: 2/replicas: 3/;s/nginx:1.27/nginx:1.28/' deployment.yaml > changed.yaml
        kubectl diff -f changed.yaml
        kubectl apply -f changed.yaml --dry-run=server
        kubectl apply -f changed.yaml
        kubectl diff -f changed.yaml
        kubectl apply view-last-applied deployment web
        kubectl apply view-last-applied -f deployment.yaml -o json
        kubectl apply set-last-applied -f deployment.yaml
        kubectl apply view-last-applied deployment/web -o yaml
        kubectl apply -f changed.yaml -o yaml
        $ sed '/ports:/d' changed.yaml > fewer.yaml
        kubectl apply -f fewer.yaml
        kubectl get deployment web -o yaml
        kubectl apply -f invalid.yaml
        kubectl apply -f deployment.yaml --dry-run=client
        """,
    ),
    Scenario(
        "server-side",
        """
        kubectl apply --server-side -f deployment.yaml
        kubectl apply --server-side -f deployment.yaml
        $ sed 's/replicas: 2/replicas: 3/' deployment.yaml > changed.yaml
        kubectl apply --server-side --field-manager=other -f changed.yaml
        kubectl diff --server-side --field-manager=other -f changed.yaml
        kubectl diff --server-side --field-manager=other --force-conflicts -f changed.yaml
        kubectl apply --server-side --field-manager=other --force-conflicts -f changed.yaml --dry-run=server
        kubectl apply --server-side --field-manager=other --force-conflicts -f changed.yaml
        kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.managedFields[*].manager}'
        kubectl apply --server-side -f deployment.yaml
        kubectl scale deployment web --replicas=5
        kubectl apply --server-side -f changed.yaml
        kubectl get deployment web -o yaml
        kubectl apply -f configmaps.yaml
        kubectl apply --server-side -f configmaps.yaml
        $ sed 's/blue/red/' configmaps.yaml > red.yaml
        kubectl apply --server-side -f red.yaml
        kubectl apply view-last-applied cm colors
        kubectl get cm colors -o jsonpath='{.metadata.managedFields[*].manager}'
        kubectl apply --server-side -f mistyped.yaml
        # one unknown field only: which of several is reported is a matter of chance
        $ sed -i 's/, color: red//' unknown-fields.yaml
        kubectl apply --server-side -f unknown-fields.yaml
        kubectl apply --server-side -f sites.yaml
        kubectl apply --server-side -f site-invalid.yaml
        kubectl apply --server-side -f services.yaml -f access.yaml
        """,
    ),
    Scenario(
        "many",
        """
        kubectl apply -f configmaps.yaml -f services.yaml -f access.yaml -f workloads.yaml
        kubectl apply -f configmaps.yaml -f services.yaml -f access.yaml -f workloads.yaml
        $ sed -i 's/port: 80/port: 81/;s/blue/red/' configmaps.yaml services.yaml
        kubectl apply -f configmaps.yaml -f services.yaml
        kubectl get svc,cm
        """,
    ),
    Scenario(
        "others-changes",
        """
        kubectl create -f configmaps.yaml
        kubectl apply -f configmaps.yaml
        kubectl patch cm colors -p '{"data":{"sea":"green","sky":"gray"}}'
        kubectl apply -f configmaps.yaml
        kubectl get cm colors -o yaml
        $ sed '/sky:/d' configmaps.yaml > less.yaml
        kubectl diff -f less.yaml
        kubectl apply -f less.yaml
        kubectl get cm colors -o jsonpath='{.data}'
        $ sed 's/pi: "3.14"/pi: "3"/' configmaps.yaml > more-pi.yaml
        kubectl apply -f more-pi.yaml
        kubectl apply view-last-applied cm nothing
        kubectl apply set-last-applied -f deployment.yaml
        kubectl create -f deployment.yaml
        kubectl apply set-last-applied -f deployment.yaml
        kubectl apply set-last-applied -f deployment.yaml --create-annotation
        """,
    ),
    Scenario(
        "pruning",
        """
        kubectl apply -f configmaps.yaml -l app=web
        kubectl get cm
        $ sed -n '1,/^---/p' configmaps.yaml > first.yaml
        kubectl apply -f first.yaml --prune -l app=web --prune-allowlist=core/v1/ConfigMap
        kubectl get cm
        """,
    ),
    Scenario(
        "strictness",
        """
        kubectl apply -f unknown-fields.yaml
        kubectl apply -f unknown-fields.yaml --validate=warn
        kubectl apply -f mistyped.yaml
        kubectl apply -f unknown-kind.yaml
        kubectl apply -f generated.yaml
        kubectl apply -n nothing -f held.yaml
        cat secret.yaml | kubectl apply -f -
        kubectl diff -f secret.yaml
        kubectl diff -f configmaps.yaml
        $ sed 's/kim/lee/' secret.yaml > other.yaml
        kubectl diff -f other.yaml
        kubectl apply -f other.yaml -o jsonpath='{.data.user}'
        """,
    ),
]
