"""kubectl patch, label, annotate, edit, replace, scale, set."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "patching",
        """
        kubectl create -f deployment.yaml -f configmaps.yaml
        kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}'
        kubectl get deploy web -o jsonpath='{.spec.template.spec.containers[*].name} {.metadata.generation}'
        kubectl patch deployment web -p '{"spec":{"replicas":2}}'
        kubectl patch deployment web --type=merge -p '{"spec":{"replicas":4,"paused":true}}' -o yaml
        kubectl patch deployment web --type=json -p '[{"op":"replace","path":"/spec/replicas","value":5}]'
        kubectl patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":7}]'
        kubectl patch deployment web --type=json -p '[{"op":"remove","path":"/spec/nothing"}]'
        kubectl patch deployment web -p '{"spec":{"replicas":"many"}}'
        kubectl patch deployment web -p '{"spec":{"selector":{"matchLabels":{"app":"other"}}}}'
        kubectl patch deployment web -p '{"spec":{"color":"red"}}'
        kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"replicas":3,"readyReplicas":2}}'
        kubectl patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":6}}'
        kubectl get deployment web
        kubectl patch deployment nothing -p '{"spec":{}}'
        kubectl patch cm colors -p 'data: {sky: gray}' --dry-run=server -o yaml
        kubectl patch cm colors -p '{"data":{"sky":null}}'
        kubectl patch cm fixed --type=merge -p '{"data":{"pi":"3"}}'
        kubectl patch cm colors -p '{"metadata":{"resourceVersion":"1"}}'
        kubectl patch cm colors -p 'no: [json'
        kubectl patch -f deployment.yaml -p '{"metadata":{"labels":{"a":"b"}}}' -o name
        kubectl patch -f deployment.yaml --local -p '{"spec":{"replicas":9}}' -o yaml
        """,
    ),
    Scenario(
        "labels-and-annotations",
        """
        kubectl create -f configmaps.yaml
        kubectl label cm colors mood=good
        kubectl label cm colors mood=good
        kubectl label cm colors mood=bad
        kubectl label cm colors mood=bad --overwrite
        kubectl label cm colors mood-
        kubectl label cm colors mood-
        kubectl label cm -l app=web a=1 b=2
        kubectl label cm --all all=yes --dry-run=server
        kubectl label cm colors --list | sort
        kubectl label cm colors 'bad label=x'
        kubectl label cm colors long=$(printf 'x%.0s' $(seq 64))
        kubectl label cm nothing a=b
        kubectl label cm numbers colors c=3 --resource-version=1
        kubectl label cm colors c=3 --resource-version=1
        kubectl annotate cm colors note='some words'
        kubectl annotate cm colors note=others
        kubectl annotate cm colors note=others --overwrite -o yaml
        kubectl annotate cm --all seen=yes
        kubectl annotate cm colors note-
        kubectl annotate cm numbers --list | sort
        kubectl get cm --show-labels
        """,
    ),
    Scenario(
        "editing",
        """
        kubectl create -f configmaps.yaml -f deployment.yaml
        KUBE_EDITOR="sed -i s/blue/gray/" kubectl edit cm colors
        KUBE_EDITOR="true" kubectl edit cm colors
        KUBE_EDITOR="sed -i s/gray/green/" kubectl edit cm colors -o yaml
        KUBE_EDITOR="sed -i 's/replicas: 2/replicas: -2/'" kubectl edit deployment web
        KUBE_EDITOR="sed -i 's/replicas: 2/replicas: many/'" kubectl edit deployment web
        KUBE_EDITOR="sed -i 's/replicas: 2/replicas: 3/'" kubectl edit deployment web
        KUBE_EDITOR="sed -i 's/replicas: 3/replicas: 4/'" kubectl edit deployment web --output-patch
        KUBE_EDITOR="sed -i 's/kind: ConfigMap/kind: Secret/'" kubectl edit cm numbers
        KUBE_EDITOR="sed -i s/3.14/3/" kubectl edit cm fixed
        KUBE_EDITOR="false" kubectl edit cm colors
        KUBE_EDITOR="sed -i s/name/nome/" kubectl edit cm nothing
        KUBE_EDITOR="sed -i 's/one: .1./one: uno/;s/sky: gr.*/sky: pink/'" kubectl edit cm numbers colors
        KUBE_EDITOR="sed -i 's/replicas: 4/replicas: 5/'" kubectl edit deployment web --subresource=status
        kubectl get cm,deploy -o yaml
        """,
    ),
    Scenario(
        "replacing",
        """
        kubectl create -f configmaps.yaml -f services.yaml -f held.yaml
        kubectl get cm colors -o yaml > mine.yaml
        $ sed -i s/blue/red/ mine.yaml
        kubectl replace -f mine.yaml
        kubectl replace -f mine.yaml
        kubectl get cm colors -o json | sed 's/red/black/' | kubectl replace -f - -o yaml
        kubectl replace -f configmaps.yaml
        kubectl replace -f deployment.yaml
        kubectl replace -f services.yaml
        $ sed 's/port: 80$/port: 0/;s/port: 80,/port: 0,/' services.yaml > bad.yaml
        kubectl replace -f bad.yaml
        kubectl replace --force -f configmaps.yaml
        kubectl replace --force --grace-period=0 -f deployment.yaml
        kubectl replace --force -f held.yaml --timeout=1s
        $ sed 's/immutable: true/immutable: false/' configmaps.yaml > mutable.yaml
        kubectl replace -f mutable.yaml
        kubectl replace -f configmaps.yaml --dry-run=server
        kubectl replace --raw /api/v1/namespaces/{ns}/configmaps/held -f mine.yaml
        kubectl get cm
        """,
    ),
    Scenario(
        "scaling",
        """
        kubectl create -f deployment.yaml -f workloads.yaml
        kubectl scale deployment web --replicas=5
        kubectl scale deploy/web sts/store --replicas=1
        kubectl scale --current-replicas=9 --replicas=2 deployment/web
        kubectl scale --current-replicas=1 --replicas=2 deployment/web
        kubectl scale --resource-version=1 --replicas=2 deployment/web
        kubectl scale rs copies --replicas=0
        kubectl scale rc old --replicas=4
        kubectl scale deployment nothing --replicas=1
        kubectl scale deployment web --replicas=-1
        kubectl scale daemonset agent --replicas=1
        kubectl scale deployment web --replicas=7 --dry-run=server
        kubectl scale deployment --all --replicas=3
        kubectl scale -f deployment.yaml --replicas=8 -o yaml
        kubectl get deploy,sts,rs,rc
        """,
    ),
    Scenario(
        "setting",
        """
        kubectl create -f deployment.yaml -f services.yaml -f access.yaml
        kubectl set image deployment/web nginx=nginx:1.28
        kubectl set image deployment/web nginx=nginx:1.28
        kubectl set image deployment/web other=nginx:1.28
        kubectl set env deployment/web A=b C=d
        kubectl set env deployment/web --list
        kubectl set env deployment/web A-
        kubectl set resources deployment web --limits=cpu=200m,memory=512Mi --requests=cpu=100m
        kubectl set resources deployment web --limits=cpu=50m
        kubectl set serviceaccount deployment web robot
        kubectl set selector svc web tier=back
        kubectl set subject rolebinding readers --user=lee
        kubectl get deploy web -o yaml
        kubectl get svc web -o jsonpath='{.spec.selector}'
        """,
    ),
    Scenario(
        "rollouts",
        """
        kubectl create -f deployment.yaml -f workloads.yaml
        kubectl rollout status deployment/web --timeout=1s
        kubectl rollout status deployment/web --watch=false
        kubectl rollout history deployment/web
        kubectl rollout undo deployment/web
        kubectl rollout pause deployment/web
        kubectl rollout pause deployment/web
        kubectl rollout restart deployment/web
        kubectl rollout resume deployment/web
        kubectl rollout restart deployment/web daemonset/agent
        kubectl get deploy web -o jsonpath='{.spec.template.metadata.annotations}'
        kubectl patch deployment web --subresource=status --type=merge \\
            -p '{"status":{"observedGeneration":9,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}'
        kubectl rollout status deployment/web
        kubectl rollout status statefulset/store --watch=false
        kubectl rollout history daemonset/agent
        kubectl rollout status deployment/nothing
        """,
    ),
]
