"""kubectl describe."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "pods",
        """
        kubectl create -f configmaps.yaml -f secret.yaml -f pods.yaml -f events.yaml
        kubectl describe pod batch
        kubectl patch pod web --subresource=status --type=merge --patch-file running.yaml
        kubectl describe pod web
        kubectl describe pod web --show-events=false
        kubectl describe configmaps
        kubectl describe secret login
        kubectl describe -l app=web cm
        kubectl describe pod nothing
        kubectl describe pod we
        """,
    ),
    Scenario(
        "workloads",
        """
        kubectl create -f deployment.yaml -f workloads.yaml
        kubectl describe deployment web
        kubectl describe sts,ds,rs,rc
        kubectl describe job once
        kubectl describe cronjob nightly
        """,
    ),
    Scenario(
        "services",
        """
        kubectl create -f services.yaml
        kubectl describe service web
        kubectl describe svc outside headless elsewhere balanced
        kubectl describe endpointslice web-1
        """,
    ),
    Scenario(
        "small-kinds",
        """
        kubectl create -f access.yaml -f cluster-access.yaml -f storage.yaml -f policies.yaml
        kubectl describe serviceaccount robot
        kubectl describe role,rolebinding
        kubectl describe clusterrole,clusterrolebinding {ns}-metrics
        kubectl describe pvc data
        kubectl describe pv volume-{ns}
        kubectl describe sc slow-{ns}
        kubectl describe quota,limits,pdb
        kubectl describe hpa scaler
        kubectl describe ingress,netpol
        kubectl describe lease lead
        kubectl describe namespace {ns}
        """,
    ),
    Scenario(
        "nodes",
        """
        kubectl create -f node.yaml -f pods.yaml
        kubectl patch node node-{ns} --subresource=status --type=merge --patch-file node-status.yaml
        kubectl describe node node-{ns}
        kubectl cordon node-{ns}
        kubectl cordon node-{ns}
        kubectl get node node-{ns}
        kubectl uncordon node-{ns}
        kubectl taint node node-{ns} busy=yes:NoExecute
        kubectl taint node node-{ns} gpu-
        kubectl taint node node-{ns} missing-
        kubectl drain node-{ns} --ignore-daemonsets --timeout=5s
        kubectl drain node-{ns} --force --timeout=5s --grace-period=0
        kubectl get pods
        kubectl delete node node-{ns}
        """,
    ),
]
