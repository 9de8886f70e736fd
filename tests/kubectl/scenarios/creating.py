"""kubectl create, run and expose."""

from kubectl.scenario import Scenario

SCENARIOS = [
    Scenario(
        "from-files",
        """
        kubectl create -f configmaps.yaml
        kubectl create -f configmaps.yaml
        kubectl create -f generated.yaml
        kubectl create -f generated.yaml --dry-run=server -o yaml
        cat secret.yaml | kubectl create -f - -o name
        kubectl create -f deployment.yaml --dry-run=server -o yaml
        kubectl create -f deployment.yaml --dry-run=client -o name
        kubectl create -f deployment.yaml --save-config -o json
        kubectl get deploy,secret,cm
        kubectl create -f missing.yaml
        kubectl create -f unknown-kind.yaml
        kubectl create -f invalid.yaml
        kubectl create -f mistyped.yaml
        kubectl create -f unknown-fields.yaml
        kubectl create -f unknown-fields.yaml --validate=warn --dry-run=server
        kubectl create -f unknown-fields.yaml --validate=ignore -o yaml
        kubectl create -n nothing -f held.yaml
        """,
    ),
    Scenario(
        "subcommands",
        """
        kubectl create configmap words --from-literal=a=b --from-literal=c=d
        kubectl create configmap files --from-file=secret.yaml --from-file=own=held.yaml -o yaml
        kubectl create secret generic login --from-literal=user=kim
        kubectl create secret docker-registry registry --docker-server=r.example.com --docker-username=a --docker-password=b
        kubectl create deployment web --image=nginx:1.27 --replicas=2 --port=80
        kubectl create deployment two --image=nginx:1.27 --image=busybox:1.36 -o yaml
        kubectl create job once --image=busybox:1.36 -- date
        kubectl create cronjob tick --image=busybox:1.36 --schedule="*/5 * * * *" -- date
        kubectl create job now --from=cronjob/tick
        kubectl create service clusterip inside --tcp=80:8080
        kubectl create service nodeport outside --tcp=80
        kubectl create service externalname elsewhere --external-name=db.example.com
        kubectl create serviceaccount robot
        kubectl create role reader --verb=get,list --resource=pods,deployments.apps
        kubectl create rolebinding readers --role=reader --serviceaccount={ns}:robot --user=kim
        kubectl create clusterrole {ns}-nodes --verb=get --resource=nodes
        kubectl create clusterrolebinding {ns}-nodes --clusterrole={ns}-nodes --group=staff
        kubectl create namespace {ns}-more
        kubectl create quota few --hard=configmaps=5,count/leases.coordination.k8s.io=5
        kubectl create poddisruptionbudget budget --selector=app=web --min-available=1
        kubectl create priorityclass high-{ns} --value=1000 --description=high
        kubectl create ingress door --rule="a.example.com/=web:80,tls=cert"
        kubectl get cm,secret,deploy,job,cj,svc,sa,role,rolebinding,pdb,ing -o wide
        kubectl get priorityclass high-{ns}
        kubectl get job now -o yaml
        kubectl get role,rolebinding -o yaml
        """,
    ),
    Scenario(
        "subcommands-refused",
        """
        kubectl create configmap words
        kubectl create configmap words
        kubectl create configmap Words
        kubectl create deployment Web --image=nginx
        kubectl create cronjob tick --image=busybox --schedule="never"
        kubectl create namespace {ns}
        kubectl create service nodeport outside --tcp=80 --node-port=1
        kubectl create role reader --verb=get --resource=nothings
        kubectl create job now --from=cronjob/missing
        kubectl create deployment web --image=nginx -n missing
        kubectl create secret generic login --from-literal=a=b --type=kubernetes.io/tls
        kubectl create deployment web --image=nginx --dry-run=server -o yaml
        """,
    ),
    Scenario(
        "run-and-expose",
        """
        kubectl run web --image=nginx:1.27 --port=80 --labels=app=web,tier=front --env=A=b
        kubectl run web --image=nginx:1.27
        kubectl run shell --image=busybox:1.36 --restart=Never --dry-run=server -o yaml -- sleep 5
        kubectl get pod web -o yaml
        kubectl expose pod web --port=80 --name=front
        kubectl create deployment shop --image=shop:2 --port=8080
        kubectl expose deployment shop --port=80 --target-port=8080 --type=NodePort
        kubectl expose deployment shop --port=80
        kubectl expose deployment nothing --port=80
        kubectl get svc -o wide
        kubectl autoscale deployment shop --min=1 --max=4 --cpu=70%
        kubectl get hpa shop -o yaml
        """,
    ),
]
