"""kubectl apply --server-side, and who owns which fields afterwards."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "deployment",
        """
        kubectl apply --server-side -f deployment.yaml
        kubectl apply --server-side -f deployment.yaml
        kubectl get deployment web --show-managed-fields -o yaml
        $ sed 's/replicas: 2/replicas: 3/;s/nginx:1.27/nginx:1.28/' deployment.yaml > changed.yaml
        kubectl diff --server-side -f changed.yaml
        kubectl apply --server-side -f changed.yaml --dry-run=server
        kubectl apply --server-side -f changed.yaml --dry-run=server -o yaml --show-managed-fields
        kubectl apply --server-side -f changed.yaml -o yaml
        $ sed '/ports:/d' changed.yaml > fewer.yaml
        kubectl apply --server-side -f fewer.yaml
        kubectl get deployment web -o jsonpath='{.spec.template.spec.containers}'
        kubectl apply --server-side -f invalid.yaml
        # one unknown field only: which of several is reported is a matter of chance
        $ sed -i 's/, color: red//' unknown-fields.yaml
        kubectl apply --server-side -f unknown-fields.yaml
        kubectl apply --server-side -f unknown-fields.yaml --validate=warn
        kubectl apply --server-side -f unknown-fields.yaml --validate=ignore
        kubectl apply --server-side -f mistyped.yaml
        kubectl apply --server-side -f unknown-kind.yaml
        kubectl apply --server-side -f generated.yaml
        kubectl apply --server-side -f deployment.yaml --dry-run=client
        kubectl apply --server-side -f deployment.yaml --field-manager=$(printf 'x%.0s' $(seq 129))
        kubectl get deployment web --show-managed-fields -o yaml > mine.yaml
        kubectl apply --server-side -f mine.yaml
        kubectl apply --server-side -f deployment.yaml -n nothing
        """,
    ),
    Scenario(
        "conflicts",
        """
        kubectl apply --server-side -f deployment.yaml
        kubectl scale deployment web --replicas=5
        kubectl apply --server-side -f deployment.yaml
        kubectl set image deployment/web nginx=nginx:1.29
        kubectl apply --server-side -f deployment.yaml 2>&1 | sort
        kubectl get deployment web --show-managed-fields -o yaml
        kubectl apply --server-side -f deployment.yaml --force-conflicts
        kubectl get deployment web --show-managed-fields -o yaml
        $ sed 's/replicas: 2/replicas: 3/;s/nginx:1.27/nginx:1.28/;s/^  labels: {app: web}/  labels: {app: web, tier: front}/' deployment.yaml > robot.yaml
        kubectl apply --server-side -f deployment.yaml --field-manager=robot
        kubectl apply --server-side -f robot.yaml --field-manager=robot 2>&1 | sort
        kubectl apply --server-side -f robot.yaml --field-manager=robot --dry-run=server 2>&1 | sort
        kubectl diff --server-side -f robot.yaml --field-manager=robot 2>&1 | sort
        kubectl diff --server-side -f robot.yaml --field-manager=robot --force-conflicts
        kubectl apply --server-side -f robot.yaml --field-manager=robot --force-conflicts
        kubectl get deployment web --show-managed-fields -o yaml
        kubectl apply --server-side -f deployment.yaml
        $ sed '/replicas:/d;s/nginx:1.27/nginx:1.28/' deployment.yaml > given-up.yaml
        kubectl apply --server-side -f given-up.yaml
        kubectl get deployment web --show-managed-fields -o yaml
        """,
    ),
    Scenario(
        "migrating",
        """
        kubectl apply -f configmaps.yaml
        kubectl get cm colors --show-managed-fields -o yaml
        kubectl apply --server-side -f configmaps.yaml
        kubectl get cm colors --show-managed-fields -o yaml
        $ sed '/sky:/d;s/one: "1"/one: "I"/' configmaps.yaml > changed.yaml
        kubectl apply --server-side -f changed.yaml
        kubectl get cm colors numbers --show-managed-fields -o yaml
        kubectl apply -f configmaps.yaml
        kubectl get cm colors --show-managed-fields -o yaml
        kubectl apply --server-side -f changed.yaml
        kubectl get cm numbers --show-managed-fields -o yaml
        kubectl create -f deployment.yaml --save-config
        kubectl apply --server-side -f deployment.yaml
        kubectl get deployment web --show-managed-fields -o yaml
        """,
    ),
    Scenario(
        "owners",
        """
        # each command leaves its own name
        kubectl create -f configmaps.yaml -f services.yaml
        kubectl label cm colors mood=good
        kubectl annotate cm colors note=words
        kubectl patch cm colors -p '{"data":{"sea":"green"}}'
        kubectl patch cm colors --type=merge -p '{"data":{"sea":"gray"}}' --field-manager=another
        KUBE_EDITOR="sed -i s/blue/white/" kubectl edit cm colors
        kubectl get cm colors --show-managed-fields -o yaml
        kubectl apply --server-side -f configmaps.yaml 2>&1 | sort
        kubectl get cm colors --show-managed-fields -o yaml | kubectl replace -f -
        kubectl get cm colors --show-managed-fields -o yaml
        kubectl patch cm colors --type=merge -p '{"metadata":{"managedFields":[{}]}}'
        kubectl get cm colors --show-managed-fields -o jsonpath='{.metadata.managedFields}'
        kubectl label cm colors mood=fine --overwrite
        kubectl get cm colors --show-managed-fields -o yaml
        kubectl apply --server-side -f services.yaml
        kubectl get svc web outside balanced --show-managed-fields -o yaml
        kubectl describe svc web
        """,
    ),
    Scenario(
        "many",
        """
        kubectl apply --server-side -f configmaps.yaml -f services.yaml -f access.yaml -f workloads.yaml -f pods.yaml
        kubectl apply --server-side -f configmaps.yaml -f services.yaml -f access.yaml -f workloads.yaml -f pods.yaml
        kubectl get cm,svc,sa,role,rolebinding --show-managed-fields -o yaml -l '!none' --field-selector metadata.name!=kube-root-ca.crt
        kubectl get sts,ds,rs,rc,job,cj,pod --show-managed-fields -o yaml
        $ sed -i 's/port: 80/port: 81/;s/blue/red/' configmaps.yaml services.yaml
        kubectl apply --server-side -f configmaps.yaml -f services.yaml
        kubectl patch pod web --subresource=status --type=merge --patch-file running.yaml
        kubectl get pod web --show-managed-fields -o yaml
        kubectl apply --server-side -f pods.yaml
        kubectl rollout restart sts/store
        kubectl apply --server-side -f workloads.yaml
        kubectl get sts store --show-managed-fields -o yaml
        """,
    ),
    Scenario(
        "sites",
        """
        kubectl apply --server-side -f sites.yaml
        kubectl apply --server-side -f sites.yaml
        kubectl get site home --show-managed-fields -o yaml
        kubectl scale site home --replicas=4
        kubectl get site home --show-managed-fields -o yaml
        kubectl patch site shop --type=merge -p '{"spec":{"replicas":9}}'
        kubectl apply --server-side -f sites.yaml
        kubectl apply --server-side -f sites.yaml --force-conflicts
        kubectl apply --server-side --subresource=status -f site-status.yaml --field-manager=status
        kubectl get site home --show-managed-fields -o yaml
        $ sed 's/name: http, port: 80/name: https, port: 443/' sites.yaml > other.yaml
        kubectl apply --server-side -f other.yaml --field-manager=other
        kubectl get site home --show-managed-fields -o yaml
        kubectl apply --server-side -f other.yaml
        kubectl get site home -o jsonpath='{.spec.ports}'
        kubectl apply --server-side -f site-invalid.yaml
        kubectl apply --server-side -f site-invalid.yaml --validate=ignore 2>&1 | sort
        kubectl diff --server-side -f sites.yaml
        """,
    ),
    Scenario(
        "pruning",
        """
        kubectl apply -f sites.yaml -l app=web
        $ sed 's/name: home/name: house/' sites.yaml > house.yaml
        kubectl apply -f house.yaml --prune -l app=web --prune-allowlist=kubectl.test.steersman.dev/v1/Site
        kubectl get sites
        KUBECTL_APPLYSET=true kubectl apply --server-side --prune --applyset=mine -n {ns} -f configmaps.yaml -f sites.yaml
        kubectl get secret mine -o yaml
        $ sed -n '1,/^---/p' configmaps.yaml > first.yaml
        KUBECTL_APPLYSET=true kubectl apply --server-side --prune --applyset=mine -n {ns} -f first.yaml | sort
        kubectl get cm,sites --show-labels
        """,
    ),
]
