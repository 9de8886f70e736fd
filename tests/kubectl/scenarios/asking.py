"""What kubectl tells about the server itself: explain, api-resources, versions, rights."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "explain",
        """
        kubectl explain pod
        kubectl explain pods.spec.containers.livenessProbe
        kubectl explain deployment --recursive
        kubectl explain deploy.spec.strategy
        kubectl explain cm
        kubectl explain service.spec.ports --recursive
        kubectl explain site
        kubectl explain site.spec
        kubectl explain sites.spec.ports.port
        kubectl explain site --recursive
        kubectl explain site.status.conditions
        kubectl explain pod.spec.nothing
        kubectl explain nothing
        kubectl explain cronjob --api-version=batch/v1
        kubectl explain hpa --api-version=autoscaling/v1
        kubectl explain pod.spec.volumes.emptyDir -o plaintext-openapiv2
        """,
    ),
    Scenario(
        "explain-all-kinds",
        "".join(
            f"kubectl explain {kind} --recursive\n"
            for kind in [
                "pod",
                "svc",
                "ns",
                "secret",
                "sa",
                "pvc",
                "pv",
                "node",
                "event",
                "endpoints",
                "quota",
                "limits",
                "rc",
                "podtemplate",
                "sts",
                "ds",
                "rs",
                "controllerrevision",
                "job",
                "cronjob",
                "pdb",
                "role",
                "clusterrole",
                "rolebinding",
                "clusterrolebinding",
                "lease",
                "ingress",
                "ingressclass",
                "netpol",
                "sc",
                "hpa",
                "endpointslice",
                "priorityclass",
                "runtimeclass",
                "csr",
                "crd",
                "apiservice",
                "mutatingwebhookconfiguration",
                "csidriver",
            ]
        ),
    ),
    Scenario(
        "resources",
        """
        kubectl api-resources --api-group=
        kubectl api-resources --api-group=apps -o wide
        kubectl api-resources --api-group=kubectl.test.steersman.dev -o wide
        kubectl api-resources --namespaced=false --sort-by=name
        kubectl api-resources --verbs=list,get -o name --namespaced
        kubectl api-resources --api-group=batch --no-headers
        kubectl api-resources --categories=all
        kubectl api-resources --api-group=nothing
        kubectl api-versions
        """,
    ),
    Scenario(
        "server",
        """
        kubectl version
        kubectl version -o yaml
        kubectl cluster-info
        kubectl get --raw /version
        """,
    ),
    Scenario(
        "rights",
        """
        kubectl create -f access.yaml -f cluster-access.yaml
        kubectl auth whoami
        kubectl auth whoami -o yaml
        kubectl auth can-i create pods
        kubectl auth can-i '*' '*' --all-namespaces
        kubectl auth can-i get pods --as kim
        kubectl auth can-i delete pods --as kim
        kubectl auth can-i get pods --subresource=log --as kim
        kubectl auth can-i update deployment/web --as kim
        kubectl auth can-i update deployment/other --as kim
        kubectl auth can-i get /metrics --as lee --as-group staff
        kubectl auth can-i get /metrics --as lee
        kubectl auth can-i get nothings
        kubectl auth can-i list pods --as system:serviceaccount:{ns}:robot -q
        kubectl auth can-i --list --as kim
        kubectl auth whoami --as kim --as-group staff --as-uid 7
        kubectl auth reconcile -f cluster-access.yaml
        kubectl get pods --as kim
        kubectl get cm --as kim
        kubectl get nodes --as kim
        kubectl create cm a --as kim
        kubectl delete deployment other --as kim
        kubectl get pods --as system:serviceaccount:{ns}:robot
        kubectl get --raw /metrics --as lee
        kubectl create rolebinding more --clusterrole=admin --user=kim --as kim
        """,
    ),
    Scenario(
        "tokens",
        """
        kubectl create serviceaccount robot
        kubectl create token robot | tr -cd .
        kubectl create token robot --duration 20m --audience here --audience there -o jsonpath='{.spec}'
        kubectl create token robot --duration 10s
        kubectl create token none
        kubectl create secret generic key
        kubectl create token robot --bound-object-kind Secret --bound-object-name key -o jsonpath='{.spec}'
        kubectl create token robot --bound-object-kind Secret --bound-object-name none
        kubectl create token robot --as kim
        kubectl auth can-i create serviceaccounts/token --as kim
        """,
    ),
    Scenario(
        "mistakes",
        """
        kubectl get nothings
        kubectl get pods -n missing
        kubectl get pods nothing -n missing
        kubectl get pods.v9.apps
        kubectl create -f pods.yaml --field-manager=''
        kubectl get pods -o nothing
        kubectl get pods --no-such-flag
        kubectl nothing
        kubectl logs web -c nginx
        kubectl logs nothing
        kubectl exec web -- date
        kubectl top pods
        kubectl get cm --server-print=false
        kubectl get po web batch --server-print=false
        """,
    ),
]
