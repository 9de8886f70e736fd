"""What goes with what is deleted: dependents, and all that is in a namespace."""

from kubectl.scenario import Scenario

#: Give the children of a file the owner that is there now.
_OF_CONFIGMAP = """sed -i "s/OWNER/$(kubectl get cm owner -o jsonpath='{.metadata.uid}')/" children.yaml"""
_OF_REPLICASET = (
    """sed "s/OWNER/$(kubectl get rs copies -o jsonpath='{.metadata.uid}')/;s/name: owner/name: copies/;"""
    """s/apiVersion: v1, kind: ConfigMap/apiVersion: apps\\/v1, kind: ReplicaSet/" children.yaml > copies.yaml"""
)
_OF_SITE = (
    """sed "s/OWNER/$(kubectl get site home -o jsonpath='{.metadata.uid}')/;s/name: owner/name: home/;"""
    """s/apiVersion: v1, kind: ConfigMap/apiVersion: kubectl.test.steersman.dev\\/v1, kind: Site/" children.yaml > parts.yaml"""
)

SCENARIOS = [
    Scenario(
        "background",
        f"""
        kubectl create cm owner
        $ {_OF_CONFIGMAP}
        kubectl create -f children.yaml
        kubectl delete cm owner
        $ kubectl wait --for=delete cm/child secret/child --timeout=60s
        kubectl get cm,secrets -l family
        # there is no owner, so nothing stays
        kubectl create -f children.yaml
        $ kubectl wait --for=delete cm/child secret/child --timeout=60s
        kubectl get cm,secrets
        """,
    ),
    Scenario(
        "foreground",
        f"""
        kubectl create cm owner
        $ {_OF_CONFIGMAP}
        kubectl create -f children.yaml
        kubectl patch cm child --type=merge -p '{{"metadata":{{"finalizers":["example.com/hold"]}}}}'
        kubectl delete cm owner --cascade=foreground --timeout=2s
        $ kubectl wait --for=delete secret/child --timeout=60s
        kubectl get cm owner -o yaml
        kubectl get cm child -o yaml
        kubectl describe cm child
        kubectl patch cm child --type=merge -p '{{"metadata":{{"finalizers":null}}}}'
        $ kubectl wait --for=delete cm/owner --timeout=60s
        kubectl get cm -l family
        """,
    ),
    Scenario(
        "orphans",
        f"""
        kubectl create cm owner
        $ {_OF_CONFIGMAP}
        kubectl create -f children.yaml
        kubectl delete cm owner --cascade=orphan
        kubectl get cm child -o yaml
        kubectl get secret child -o jsonpath='{{.metadata.ownerReferences}}'
        """,
    ),
    Scenario(
        "replicasets",
        f"""
        kubectl create -f workloads.yaml
        $ {_OF_REPLICASET}
        kubectl create -f copies.yaml
        kubectl get cm child -o jsonpath='{{.metadata.ownerReferences[0].kind}} {{.metadata.ownerReferences[0].name}}'
        kubectl delete rs copies --cascade=orphan
        kubectl get cm child -o yaml
        kubectl get secret child -o jsonpath='{{.metadata.ownerReferences}}'
        kubectl create -f workloads.yaml --dry-run=server -o name
        kubectl apply -f workloads.yaml -l app=copies
        kubectl delete cm,secret child
        $ {_OF_REPLICASET}
        kubectl create -f copies.yaml
        kubectl delete rs copies --cascade=foreground
        kubectl get rs,cm,secrets
        kubectl delete sts store --cascade=background
        kubectl delete job once
        kubectl delete cronjob/nightly ds/agent rc/old
        """,
    ),
    Scenario(
        "sites",
        f"""
        kubectl create -f sites.yaml
        $ {_OF_SITE}
        kubectl create -f parts.yaml
        kubectl get cm child -o jsonpath='{{.metadata.ownerReferences[0].kind}} {{.metadata.ownerReferences[0].name}}'
        kubectl patch site shop --type=merge -p "{{\\"metadata\\":{{\\"ownerReferences\\":$(kubectl get secret child -o jsonpath='{{.metadata.ownerReferences}}')}}}}"
        kubectl delete site home --cascade=foreground
        kubectl get sites,cm,secrets -l family
        kubectl get sites
        kubectl create -f sites.yaml
        $ {_OF_SITE}
        kubectl create -f parts.yaml
        kubectl delete site home --cascade=orphan
        kubectl get cm child -o yaml
        kubectl delete cm,secret child
        kubectl create -f sites.yaml
        $ {_OF_SITE}
        kubectl create -f parts.yaml
        kubectl delete sites --all
        $ kubectl wait --for=delete cm/child secret/child --timeout=60s
        kubectl get sites,cm,secrets
        """,
    ),
    Scenario(
        "namespaces",
        """
        kubectl create namespace {ns}-gone
        $ kubectl wait --for=create sa/default cm/kube-root-ca.crt -n {ns}-gone --timeout=60s
        kubectl get all,cm,sa -n {ns}-gone
        kubectl create -n {ns}-gone -f configmaps.yaml -f sites.yaml -f services.yaml -f workloads.yaml
        kubectl delete namespace {ns}-gone
        kubectl get namespace {ns}-gone
        kubectl get sites,cm,svc -n {ns}-gone
        """,
    ),
    Scenario(
        "namespace-held",
        """
        kubectl create namespace {ns}-held
        $ kubectl wait --for=create sa/default cm/kube-root-ca.crt -n {ns}-held --timeout=60s
        kubectl create -n {ns}-held -f held.yaml
        kubectl delete namespace {ns}-held --wait=false
        kubectl create cm late -n {ns}-held
        kubectl create sa late -n {ns}-held
        kubectl wait --for=condition=NamespaceFinalizersRemaining ns/{ns}-held --timeout=60s
        kubectl get namespace {ns}-held
        kubectl get namespace {ns}-held -o yaml
        kubectl describe namespace {ns}-held
        kubectl get all,cm,sa -n {ns}-held
        kubectl patch cm held -n {ns}-held --type=merge -p '{"metadata":{"finalizers":null}}'
        $ kubectl wait --for=delete namespace/{ns}-held --timeout=60s
        kubectl get namespace {ns}-held
        """,
    ),
    Scenario(
        "accounts",
        """
        kubectl get sa,cm
        kubectl describe sa default
        kubectl describe cm kube-root-ca.crt
        kubectl get sa default -o yaml | sed /resourceVersion/d
        kubectl get cm kube-root-ca.crt -o yaml | sed /resourceVersion/d
        kubectl create token default | tr -cd .
        kubectl auth can-i get pods --as system:serviceaccount:{ns}:default
        kubectl delete sa default
        kubectl wait --for=create sa/default --timeout=60s
        kubectl delete cm kube-root-ca.crt
        kubectl wait --for=create cm/kube-root-ca.crt --timeout=60s
        kubectl patch cm kube-root-ca.crt --type=merge -p '{"data":{"ca.crt":"mine"}}' -o name
        $ while test "$(kubectl get cm kube-root-ca.crt -o jsonpath='{.data.ca\\.crt}')" = mine; do sleep 0.1; done
        kubectl get sa,cm
        """,
    ),
]
