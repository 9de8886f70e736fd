"""A custom resource."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "sites",
        """
        kubectl create -f sites.yaml
        kubectl get sites
        kubectl get st -o wide --show-labels
        kubectl get site home -o yaml
        kubectl get webs -o name
        kubectl get sites.kubectl.test.steersman.dev shop -o json
        kubectl get sites -l app=web --field-selector metadata.name=home
        kubectl get sites --field-selector spec.image=nginx
        kubectl describe site home
        kubectl label site home a=b
        kubectl annotate site home c=d
        kubectl patch site home --type=merge -p '{"spec":{"replicas":4}}'
        kubectl patch site home -p '{"spec":{"replicas":5}}'
        kubectl patch site home --type=json -p '[{"op":"replace","path":"/spec/replicas","value":60}]'
        kubectl patch site home --subresource=status --type=merge -p '{"status":{"replicas":4}}'
        kubectl scale site home --replicas=2
        kubectl get site home --subresource=scale -o yaml
        KUBE_EDITOR="sed -i s/1.27/1.28/" kubectl edit site home
        KUBE_EDITOR="sed -i s/static/odd/" kubectl edit site home
        kubectl get sites
        kubectl wait --for=jsonpath='{.status.replicas}'=4 site/home --timeout=5s
        kubectl create -f site-invalid.yaml
        kubectl create -f site-invalid.yaml --validate=ignore 2>&1 | sort
        kubectl create -f sites.yaml
        kubectl delete site home
        kubectl delete sites --all
        kubectl get sites
        """,
    ),
    Scenario(
        "applied",
        """
        kubectl apply -f sites.yaml
        kubectl apply -f sites.yaml
        $ sed 's/nginx:1.27/nginx:1.28/;s/replicas: 3/replicas: 2/' sites.yaml > changed.yaml
        kubectl diff -f changed.yaml
        kubectl apply -f changed.yaml
        kubectl apply -f site-invalid.yaml
        kubectl get sites
        kubectl replace -f sites.yaml
        kubectl get site home -o yaml > mine.yaml
        $ sed -i s/1.27/1.29/ mine.yaml
        kubectl replace -f mine.yaml
        kubectl replace --force -f sites.yaml
        kubectl delete -f sites.yaml
        """,
    ),
]
