"""What people do most: every run of the tests plays more than half of it."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "getting",
        """
        kubectl create -f configmaps.yaml -f pods.yaml -f services.yaml
        kubectl get pods,svc,cm
        kubectl get pods -o wide
        kubectl get cm,pods -o yaml
        kubectl get svc web -o json
        kubectl get cm -o name
        kubectl get cm colors -o jsonpath='{.data.sky}{"\\n"}'
        kubectl get pods -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image
        kubectl get cm -l 'app in (web),tier!=back' --show-labels
        kubectl get pods -A --field-selector metadata.namespace={ns},spec.nodeName=node-{ns}
        kubectl get cm --chunk-size=1 --sort-by=.metadata.name
        kubectl get cm nothing
        kubectl get nothings
        """,
    ),
    Scenario(
        "watching",
        """
        kubectl create -f configmaps.yaml
        & kubectl get cm numbers -w --output-watch-events
        kubectl label cm numbers one=1
        kubectl delete cm numbers
        &4
        """,
    ),
    Scenario(
        "describing",
        """
        kubectl create -f deployment.yaml -f services.yaml -f pods.yaml -f events.yaml -f storage.yaml
        kubectl describe deployment web
        kubectl describe service web
        kubectl patch pod web --subresource=status --type=merge --patch-file running.yaml
        kubectl describe pod web
        kubectl describe pvc data
        kubectl describe namespace {ns}
        """,
    ),
    Scenario(
        "creating",
        """
        kubectl create deployment web --image=nginx:1.27 --replicas=2 --port=80
        kubectl create configmap words --from-literal=a=b
        kubectl create configmap words --from-literal=a=b
        kubectl create secret generic login --from-literal=user=kim -o yaml
        kubectl create job once --image=busybox:1.36 -- date
        kubectl create cronjob tick --image=busybox:1.36 --schedule="*/5 * * * *" -- date
        kubectl create serviceaccount robot
        kubectl create role reader --verb=get,list --resource=pods
        kubectl create rolebinding readers --role=reader --serviceaccount={ns}:robot
        kubectl expose deployment web --port=80
        kubectl run shell --image=busybox:1.36 --restart=Never -- sleep 5
        kubectl create -f generated.yaml
        kubectl create -f invalid.yaml
        kubectl create -f unknown-fields.yaml
        kubectl get deploy,cm,secret,job,cj,sa,role,rolebinding,svc,pod -o wide
        """,
    ),
    Scenario(
        "changing",
        """
        kubectl create -f deployment.yaml -f configmaps.yaml
        kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}'
        kubectl patch deployment web --type=merge -p '{"spec":{"replicas":4}}'
        kubectl patch deployment web --type=json -p '[{"op":"replace","path":"/spec/replicas","value":5}]'
        kubectl patch deployment web -p '{"spec":{"replicas":"many"}}'
        kubectl label cm colors mood=good
        kubectl label cm colors mood=bad
        kubectl label cm -l app=web mood-
        kubectl annotate cm --all note='some words'
        KUBE_EDITOR="sed -i s/blue/gray/" kubectl edit cm colors
        KUBE_EDITOR="true" kubectl edit cm colors
        KUBE_EDITOR="sed -i 's/replicas: 5/replicas: -5/'" kubectl edit deployment web
        kubectl get cm colors -o yaml > mine.yaml
        $ sed -i s/gray/red/ mine.yaml
        kubectl replace -f mine.yaml
        kubectl replace -f mine.yaml
        kubectl replace --force -f configmaps.yaml
        kubectl scale deployment web --replicas=3
        kubectl scale deployment web --current-replicas=9 --replicas=2
        kubectl set image deployment/web nginx=nginx:1.28
        kubectl rollout restart deployment/web
        kubectl get deployment web -o yaml
        """,
    ),
    Scenario(
        "applying",
        """
        kubectl apply -f deployment.yaml -f services.yaml
        kubectl apply -f deployment.yaml -f services.yaml
        $ sed -i 's/replicas: 2/replicas: 3/;/ports: \\[{containerPort/d' deployment.yaml
        kubectl diff -f deployment.yaml
        kubectl apply -f deployment.yaml
        kubectl apply view-last-applied deployment web
        kubectl diff -f deployment.yaml
        kubectl get deployment,svc -o yaml | kubectl apply -f -
        kubectl apply -f invalid.yaml
        kubectl apply --server-side -f deployment.yaml
        kubectl apply --server-side --field-manager=other -f services.yaml
        kubectl get deployment web -o yaml
        """,
    ),
    Scenario(
        "deleting",
        """
        kubectl create -f configmaps.yaml -f held.yaml -f pods.yaml
        kubectl delete cm colors
        kubectl delete cm colors
        kubectl delete cm -l app
        kubectl delete cm held --timeout=1s
        kubectl patch cm held --type=merge -p '{"metadata":{"finalizers":null}}'
        kubectl wait --for=delete cm/held --timeout=5s
        kubectl patch pod web --subresource=status --type=merge --patch-file running.yaml
        kubectl wait --for=condition=Ready pod/web --timeout=5s
        kubectl wait --for=jsonpath='{.status.phase}'=Failed pod/web --timeout=1s
        kubectl delete pod --all --now --wait=false
        kubectl get cm,pods
        """,
    ),
    Scenario(
        "asking",
        """
        kubectl create -f access.yaml
        kubectl explain pod.spec.containers.livenessProbe
        kubectl explain site.spec --recursive
        kubectl api-resources --api-group=apps -o wide
        kubectl api-versions
        kubectl version
        kubectl auth whoami
        kubectl auth can-i create pods
        kubectl auth can-i get pods --as kim
        kubectl auth can-i delete pods --as kim
        kubectl auth can-i --list --as kim
        kubectl get cm --as kim
        kubectl create cm a --as kim
        """,
    ),
    Scenario(
        "custom",
        """
        kubectl create -f sites.yaml
        kubectl get st home -o yaml
        kubectl describe site home
        kubectl patch site home --type=merge -p '{"spec":{"replicas":4}}'
        kubectl apply -f sites.yaml
        kubectl create -f site-invalid.yaml
        kubectl delete sites --all
        """,
    ),
    Scenario(
        "server-side",
        """
        kubectl apply --server-side -f deployment.yaml
        kubectl apply --server-side -f deployment.yaml
        kubectl scale deployment web --replicas=5
        kubectl apply --server-side -f deployment.yaml
        kubectl apply --server-side -f deployment.yaml --force-conflicts
        $ sed 's/replicas: 2/replicas: 3/;s/nginx:1.27/nginx:1.28/' deployment.yaml > robot.yaml
        kubectl apply --server-side -f robot.yaml --field-manager=robot
        kubectl apply --server-side -f robot.yaml --field-manager=robot --force-conflicts --dry-run=server
        kubectl get deployment web --show-managed-fields -o yaml
        kubectl apply -f configmaps.yaml
        kubectl apply --server-side -f configmaps.yaml
        kubectl get cm colors --show-managed-fields -o yaml
        """,
    ),
    Scenario(
        "cascading",
        """
        kubectl create namespace {ns}-gone
        kubectl create -n {ns}-gone -f configmaps.yaml -f sites.yaml
        kubectl delete namespace {ns}-gone --wait=false
        kubectl create cm owner
        $ sed -i "s/OWNER/$(kubectl get cm owner -o jsonpath='{.metadata.uid}')/" children.yaml
        kubectl create -f children.yaml
        kubectl patch cm child --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
        kubectl delete cm owner --cascade=foreground --timeout=1s
        kubectl get cm owner -o yaml
        kubectl patch cm child --type=merge -p '{"metadata":{"finalizers":null}}'
        $ kubectl wait --for=delete cm/owner secret/child namespace/{ns}-gone --timeout=60s
        kubectl get cm,secrets
        kubectl get cm,sites -n {ns}-gone
        """,
    ),
    Scenario(
        "definitions",
        """
        kubectl apply -f lamp-crd.yaml
        kubectl wait --for=condition=Established crd/lamps.{ns}.play.steersman.dev --timeout=60s
        $ timeout 60 sh -c 'until kubectl explain lamp; do sleep 0.1; done'
        kubectl get crd lamps.{ns}.play.steersman.dev -o yaml
        kubectl api-resources --api-group={ns}.play.steersman.dev -o wide
        kubectl explain lamp.spec --recursive
        kubectl apply -f lamps.yaml
        kubectl get lm -o wide
        kubectl get lamps.v1beta1.{ns}.play.steersman.dev desk -o yaml
        kubectl create -f lamp-invalid.yaml 2>&1 | sort
        kubectl patch lamp desk --type=merge -p '{"spec":{"socket":"pin","color":"black"}}' 2>&1 | sort
        kubectl scale lamp desk --replicas=3
        kubectl delete crd lamps.{ns}.play.steersman.dev
        kubectl get lamps
        """,
    ),
]
