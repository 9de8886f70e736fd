"""kubectl delete and kubectl wait."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "plain",
        """
        kubectl create -f configmaps.yaml -f services.yaml -f deployment.yaml -f pods.yaml
        kubectl delete cm colors
        kubectl delete cm colors
        kubectl delete cm colors --ignore-not-found
        kubectl delete cm colors numbers
        kubectl delete cm --all --dry-run=server
        kubectl delete cm -l app=other
        kubectl delete cm -l app=other
        kubectl delete -f services.yaml -o name
        kubectl delete pod web --now
        kubectl delete deployment,pod --all --wait=false
        kubectl get all,cm
        kubectl delete pod batch --force
        kubectl delete nothings --all
        kubectl delete svc
        kubectl delete --raw /api/v1/namespaces/{ns}/secrets/nothing
        """,
    ),
    Scenario(
        "held-back",
        """
        kubectl create -f held.yaml
        kubectl delete cm held --timeout=1s
        kubectl get cm held -o yaml
        kubectl delete cm held --wait=false
        kubectl wait --for=delete cm/held --timeout=1s
        kubectl patch cm held --type=merge -p '{"metadata":{"finalizers":["example.com/another"]}}'
        kubectl patch cm held --type=merge -p '{"metadata":{"finalizers":null}}'
        kubectl get cm held
        kubectl wait --for=delete cm/held --timeout=1s
        """,
    ),
    Scenario(
        "waiting",
        """
        kubectl create -f pods.yaml -f deployment.yaml
        kubectl wait --for=condition=Ready pod/web --timeout=1s
        kubectl patch pod web --subresource=status --type=merge --patch-file running.yaml
        kubectl wait --for=condition=Ready pod/web --timeout=5s
        kubectl wait --for=condition=Ready=false pod/web --timeout=1s
        kubectl wait --for=jsonpath='{.status.phase}'=Running pod/web --timeout=5s
        kubectl wait --for=jsonpath='{.status.podIP}' pod -l app=web --timeout=5s
        kubectl wait --for=jsonpath='{.status.phase}'=Failed pod --all --timeout=1s
        kubectl wait --for=create pod/web --timeout=5s
        kubectl wait --for=condition=Available deployment/nothing --timeout=1s
        kubectl wait --for=condition=Available deployment/web --timeout=1s
        kubectl wait --for=delete pod/nothing --timeout=1s
        """,
    ),
    Scenario(
        "waited-for",
        """
        kubectl create -f pods.yaml
        & sh -c 'echo waiting; kubectl wait --for=condition=Ready pod/web --timeout=2m; kubectl wait --for=delete pod/web --timeout=2m'
        kubectl patch pod web --subresource=status --type=merge --patch-file running.yaml
        kubectl delete pod web --now
        &3
        """,
    ),
    Scenario(
        "namespaces",
        """
        kubectl delete namespace default --wait=false
        kubectl delete namespace {ns}-nothing
        """,
    ),
]
