"""kubectl get: tables, formats, selectors, pages, watches."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "configmaps",
        """
        kubectl create -f configmaps.yaml
        kubectl get configmaps
        kubectl get cm colors numbers -o wide --show-labels
        kubectl get cm -o yaml
        kubectl get cm numbers -o json
        kubectl get cm -o name
        kubectl get cm --no-headers
        kubectl get cm colors -o jsonpath='{.data.sky}{"\\n"}'
        kubectl get cm -o jsonpath='{range .items[*]}{.metadata.name}={.data.one}{"\\n"}{end}'
        kubectl get cm -o go-template='{{range .items}}{{.metadata.name}} {{end}}'
        kubectl get cm -o custom-columns=NAME:.metadata.name,APP:.metadata.labels.app,NONE:.spec.none
        kubectl get cm -L app,tier
        kubectl get cm nothing
        kubectl get cm colors nothing
        kubectl get cm nothing --ignore-not-found
        kubectl get -f configmaps.yaml
        """,
    ),
    Scenario(
        "selectors",
        """
        kubectl create -f configmaps.yaml
        kubectl get cm -l app=web
        kubectl get cm -l 'app in (web, other),tier notin (back)'
        kubectl get cm -l 'app,!tier' -o name
        kubectl get cm -l app=none
        kubectl get cm -l 'app=!'
        kubectl get cm --field-selector metadata.name=colors
        kubectl get cm --field-selector metadata.name!=colors -o name
        kubectl get cm --field-selector data.sky=blue
        kubectl get cm -A -l app=web --field-selector metadata.namespace={ns}
        kubectl get cm --sort-by=.metadata.name
        kubectl get cm --sort-by=.data.none
        kubectl get cm --chunk-size=1
        kubectl get cm --chunk-size=2 -o name -l app
        kubectl get cm --chunk-size=0 --show-kind
        """,
    ),
    Scenario(
        "pods",
        """
        kubectl create -f pods.yaml
        kubectl get pods
        kubectl get pods -o wide
        kubectl patch pod web --subresource=status --type=merge --patch-file running.yaml
        kubectl get pod web
        kubectl get po web -o wide --show-labels
        kubectl get pods --field-selector=status.phase=Running
        kubectl get pods --field-selector=spec.nodeName=node-{ns},status.phase!=Running -o name
        kubectl get pods --field-selector=spec.image=nginx
        kubectl get pod web -o yaml
        kubectl get pod/web -o jsonpath='{.status.containerStatuses[?(@.ready==true)].name}'
        kubectl get pods --sort-by=.status.startTime -o custom-columns=N:.metadata.name,C:.spec.containers[*].image
        kubectl get pods -o jsonpath-as-json='{.items[*].metadata.labels}'
        kubectl get pod web --subresource=status -o yaml
        kubectl get pod web --subresource=scale
        """,
    ),
    Scenario(
        "workloads",
        """
        kubectl create -f deployment.yaml -f workloads.yaml
        kubectl get deployments,statefulsets,daemonsets,replicasets,rc,jobs,cronjobs
        kubectl get deploy,sts,ds,rs,rc,job,cj -o wide
        kubectl get all
        kubectl get deployment web -o yaml
        kubectl get statefulset store -o json
        kubectl get daemonset agent -o yaml
        kubectl get job once -o yaml
        kubectl get cronjob nightly -o yaml
        kubectl get deploy web --subresource=scale
        kubectl get deploy web --subresource=scale -o yaml
        """,
    ),
    Scenario(
        "services",
        """
        kubectl create -f services.yaml
        kubectl get services
        kubectl get svc -o wide
        kubectl get svc web -o yaml
        kubectl get svc outside headless balanced -o json
        kubectl get endpointslices
        kubectl get svc,endpointslices,pods -o name
        kubectl get svc --field-selector spec.type=NodePort -o name
        """,
    ),
    Scenario(
        "small-kinds",
        """
        kubectl create -f access.yaml -f cluster-access.yaml -f storage.yaml -f policies.yaml -f secret.yaml
        kubectl get serviceaccounts,roles,rolebindings,secrets,pvc
        kubectl get quota,limits,pdb,hpa,ingress,netpol,lease
        kubectl get sa,role,rolebinding,secret,pvc,pdb,hpa,ing,netpol,lease -o wide
        kubectl get clusterrole,clusterrolebinding {ns}-metrics -o wide
        kubectl get pv volume-{ns}
        kubectl get sc slow-{ns} -o wide
        kubectl get pvc data -o yaml
        kubectl get pv volume-{ns} -o yaml
        kubectl get pdb,hpa -o yaml
        kubectl get ingress,netpol,lease -o yaml
        kubectl get quota,limits,sc/slow-{ns} -o yaml
        kubectl get role,rolebinding,sa -o yaml
        kubectl get secret login -o jsonpath='{.data.password}'
        """,
    ),
    Scenario(
        "seldom-kinds",
        """
        kubectl create -f seldom.yaml
        kubectl get hpa,ingress,endpoints,endpointslices,quota -o wide
        kubectl get ingressclass,sc,csr,volumeattachment,volumeattributesclass,csinode,csidriver -l of={ns}
        kubectl get deviceclass,flowschema,prioritylevelconfiguration -l of={ns}
        kubectl get resourceclaims,resourceclaimtemplates
        kubectl get resourceslices -l of={ns}
        kubectl patch quota many --subresource=status --type=merge --patch-file quota-status.yaml
        kubectl get quota
        kubectl describe quota
        kubectl patch hpa metrics --subresource=status --type=merge --patch-file hpa-status.yaml
        kubectl get hpa
        kubectl describe hpa metrics
        kubectl get hpa older
        kubectl delete flowschema,prioritylevelconfiguration,ingressclass,sc,deviceclass,resourceslice -l of={ns}
        """,
    ),
    Scenario(
        "nodes-and-namespaces",
        """
        kubectl create -f node.yaml
        kubectl get node node-{ns}
        kubectl patch node node-{ns} --subresource=status --type=merge --patch-file node-status.yaml
        kubectl get nodes -l of={ns} -o wide
        kubectl get node node-{ns} -o yaml
        kubectl get namespace {ns}
        kubectl get ns {ns} -o yaml
        kubectl get ns {ns} --show-labels
        kubectl get ns default kube-system kube-public kube-node-lease
        kubectl delete node node-{ns}
        """,
    ),
    Scenario(
        "events",
        """
        kubectl create -f events.yaml
        kubectl get events --sort-by=.metadata.name
        kubectl get events -o wide --field-selector type=Warning
        kubectl get events --field-selector involvedObject.name=web,reason=Pulled -o name
        kubectl get events.events.k8s.io web.1 -o yaml
        kubectl events
        kubectl events --for pod/web --types=Warning
        """,
    ),
    Scenario(
        "several-kinds",
        """
        kubectl create -f deployment.yaml -f services.yaml -f pods.yaml
        kubectl get pods,svc,deploy
        kubectl get pods,svc,deploy -o name --sort-by=.metadata.name
        kubectl get pod/web svc/web deploy/web -o wide
        kubectl get pods,nothings
        kubectl get pod/web svc/nothing
        kubectl get deployments.apps,deployments.v1.apps web
        kubectl get pods/web deploy
        """,
    ),
    Scenario(
        "watching",
        """
        kubectl create -f configmaps.yaml
        & kubectl get cm numbers -w --output-watch-events
        kubectl label cm numbers one=1
        kubectl annotate cm numbers two=2
        kubectl delete cm numbers
        &5
        & kubectl get cm -w -l app=web -o custom-columns=N:.metadata.name,L:.metadata.labels
        kubectl label cm colors app=gone --overwrite
        kubectl label cm fixed app=web --overwrite
        &4
        & kubectl get cm --watch -o jsonpath='{.metadata.name}{"\\n"}'
        kubectl create cm third
        &4
        kubectl get cm -w --request-timeout=1s -o name
        """,
    ),
    Scenario(
        "watching-only",
        """
        kubectl create -f pods.yaml
        & kubectl get pods -w
        kubectl patch pod web --subresource=status --type=merge --patch-file running.yaml
        kubectl delete pod batch --now --wait=false
        &5
        """,
    ),
    Scenario(
        "raw",
        """
        kubectl create -f configmaps.yaml
        kubectl get --raw /api/v1/namespaces/{ns}/configmaps/fixed
        kubectl get --raw /api/v1/namespaces/{ns}/configmaps/nothing
        kubectl get --raw /api
        kubectl get --raw /apis/apps
        kubectl get --raw /readyz
        kubectl get --raw /nothing
        kubectl get --raw '/livez?verbose' -v=0 | head -1
        kubectl delete --raw /api/v1/namespaces/{ns}/configmaps/fixed
        kubectl create --raw /api/v1/namespaces/{ns}/configmaps -f generated.yaml
        """,
    ),
]
