"""Custom resource definitions, from kubectl apply to kubectl delete, and what is made with them.

Each scenario has a group of its own, and a noun of its own: kubectl finds a noun in any group.
"""

from kubectl.scenario import Scenario


def _installed(noun: str) -> str:
    """Lines that make ``lamp`` in all files another noun, and wait until all of the server knows it."""
    capital = noun.capitalize()
    return f"""
        $ sed -i 's/lamp/{noun}/g;s/Lamp/{capital}/g;s/\\[lm\\]/[{noun[:2]}x]/;s/lights/{noun}-lights/' lamp*.yaml
        kubectl apply -f lamp-crd.yaml
        kubectl wait --for=condition=Established crd/{noun}s.{{ns}}.play.steersman.dev --timeout=60s
        $ timeout 60 sh -c 'until kubectl explain {noun}; do sleep 0.1; done'
    """


SCENARIOS = [
    Scenario(
        "definitions",
        _installed("candle")
        + """
        kubectl apply -f lamp-crd.yaml
        kubectl get crd candles.{ns}.play.steersman.dev
        kubectl get crd -l of={ns} -o wide
        kubectl get crd candles.{ns}.play.steersman.dev -o yaml
        kubectl describe crd candles.{ns}.play.steersman.dev
        kubectl api-resources --api-group={ns}.play.steersman.dev -o wide
        kubectl api-versions | grep {ns}
        kubectl get --raw /apis/{ns}.play.steersman.dev
        kubectl get --raw /apis/{ns}.play.steersman.dev/v1
        kubectl create -f lamp-crd.yaml
        kubectl create -f crd-invalid.yaml 2>&1 | tr '*' '\\n' | sort
        kubectl create -f crd-invalid.yaml --validate=ignore 2>&1 | tr '*' '\\n' | sort
        kubectl patch crd candles.{ns}.play.steersman.dev --type=merge -p '{"spec":{"scope":"Cluster"}}'
        kubectl patch crd candles.{ns}.play.steersman.dev --type=merge -p '{"spec":{"names":{"shortNames":["cndl"]}}}'
        kubectl wait --for=jsonpath='{.status.acceptedNames.shortNames[0]}'=cndl crd/candles.{ns}.play.steersman.dev --timeout=60s
        kubectl patch crd candles.{ns}.play.steersman.dev --type=json \\
          -p '[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/-","value":{"rule":"self.nothing > 1"}}]'
        kubectl label crd candles.{ns}.play.steersman.dev a=b
        kubectl get crd candles.{ns}.play.steersman.dev --show-managed-fields -o yaml
        kubectl delete -f lamp-crd.yaml
        kubectl get crd candles.{ns}.play.steersman.dev
        """,
    ),
    Scenario(
        "explaining",
        _installed("torch")
        + """
        kubectl explain torch
        kubectl explain torch --recursive
        kubectl explain torchs.spec
        kubectl explain trx 2>&1 | head -1
        kubectl explain torch.spec.rooms
        kubectl explain torch.spec.rooms.floor
        kubectl explain torch.spec.size
        kubectl explain torch.spec.notes
        kubectl explain torch.spec.more
        kubectl explain torch.spec.socket
        kubectl explain torch.spec.nothing
        kubectl explain torch --api-version={ns}.play.steersman.dev/v1beta1
        kubectl explain torch.status --recursive
        kubectl explain torch.spec -o plaintext-openapiv2
        """,
    ),
    Scenario(
        "objects",
        _installed("bulb")
        + """
        kubectl create -f lamps.yaml
        kubectl get bulbs
        kubectl get bux -o wide --show-labels
        kubectl get bulb desk -o yaml
        kubectl get bulb-lights -o name
        kubectl get bulbs.{ns}.play.steersman.dev roof -o json
        kubectl get bulbs --field-selector spec.socket=pin
        kubectl get bulbs --field-selector spec.watts=40
        kubectl describe bulb desk
        kubectl patch bulb desk --type=merge -p '{"spec":{"watts":60}}'
        kubectl patch bulb desk -p '{"spec":{"watts":5}}'
        kubectl patch bulb desk --subresource=status --type=merge -p '{"status":{"lit":true,"replicas":1,"conditions":[{"type":"Lit","status":"True"}]}}'
        kubectl wait --for=jsonpath='{.status.lit}'=true bulb/desk --timeout=5s
        kubectl wait --for=condition=Lit bulb/desk --timeout=5s
        kubectl wait --for=condition=Lit bulb/roof --timeout=1s
        kubectl scale bulb desk --replicas=3
        kubectl scale bulb desk --replicas=30
        kubectl get bulb desk --subresource=scale -o yaml
        KUBE_EDITOR="sed -i s/green/red/" kubectl edit bulb desk
        kubectl edit bulb nothing
        kubectl get bulbs
        kubectl delete bulb --all
        """,
    ),
    Scenario(
        "refusals",
        _installed("spot")
        + """
        kubectl create -f lamp-invalid.yaml 2>&1 | sort
        kubectl apply -f lamp-invalid.yaml 2>&1 | sort
        kubectl create -f lamps.yaml
        kubectl patch spot desk --type=merge -p '{"spec":{"watts":400,"replicas":9}}'
        kubectl patch spot desk --type=merge -p '{"spec":{"color":"black"}}'
        kubectl patch spot desk --type=merge -p '{"spec":{"socket":"pin"}}'
        kubectl patch spot desk --type=merge -p '{"spec":{"replicas":-1}}'
        kubectl patch spot desk --type=merge -p '{"spec":{"watts":"many"}}'
        kubectl patch spot desk --type=merge -p '{"spec":{"watts":null}}'
        kubectl patch spot desk --type=merge -p '{"spec":{"light":"red"}}'
        kubectl patch spot desk --type=json -p '[{"op":"add","path":"/spec/rooms/-","value":{"name":"hall"}}]'
        kubectl patch spot desk --type=merge -p '{"spec":{"size":true}}'
        kubectl patch spot desk --type=merge -p '{"spec":null}'
        KUBE_EDITOR="sed -i s/screw/pin/" kubectl edit spot desk
        $ sed 's/socket: pin/socket: screw/;s/watts: 40/watts: 0/' lamps.yaml > wrong.yaml
        kubectl apply -f wrong.yaml
        kubectl apply --server-side -f wrong.yaml
        kubectl replace -f wrong.yaml
        kubectl create -f lamps.yaml
        """,
    ),
    Scenario(
        "versions",
        _installed("neon")
        + """
        kubectl create -f lamp-beta.yaml
        kubectl create -f lamps.yaml
        kubectl get neons.v1beta1.{ns}.play.steersman.dev
        kubectl get neons.v1beta1.{ns}.play.steersman.dev old -o yaml
        kubectl get neons.v1.{ns}.play.steersman.dev old -o yaml
        kubectl get neons.v2.{ns}.play.steersman.dev
        kubectl get neons
        kubectl patch neons.v1beta1.{ns}.play.steersman.dev old --type=merge -p '{"spec":{"watts":30}}'
        kubectl apply --server-side -f lamp-beta.yaml
        kubectl apply --server-side -f lamp-beta.yaml --force-conflicts
        kubectl get neon old --show-managed-fields -o yaml
        $ sed '0,/served: true/s//served: false/' lamp-crd.yaml > one-version.yaml
        kubectl apply -f one-version.yaml
        $ timeout 60 sh -c 'while kubectl get neons.v1beta1.{ns}.play.steersman.dev; do sleep 0.1; done'
        kubectl get neons.v1beta1.{ns}.play.steersman.dev
        kubectl get neons -o name
        kubectl get crd neons.{ns}.play.steersman.dev -o jsonpath='{.status.storedVersions} {.metadata.generation}'
        """,
    ),
    Scenario(
        "going",
        _installed("flare")
        + """
        kubectl create -f lamps.yaml
        kubectl patch flare roof --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
        kubectl delete crd flares.{ns}.play.steersman.dev --timeout=1s
        kubectl wait --for=condition=Terminating crd/flares.{ns}.play.steersman.dev --timeout=60s
        $ kubectl wait --for=delete flare/desk --timeout=60s
        kubectl get crd flares.{ns}.play.steersman.dev -o jsonpath='{.metadata.finalizers} {.status.conditions[?(@.type=="Terminating")].reason}'
        kubectl create -f lamps.yaml
        kubectl get flares
        kubectl patch flare roof --type=merge -p '{"metadata":{"finalizers":null}}'
        $ kubectl wait --for=delete crd/flares.{ns}.play.steersman.dev --timeout=60s
        kubectl get flares
        kubectl apply -f lamps.yaml
        kubectl apply -f lamp-crd.yaml
        kubectl wait --for=condition=Established crd/flares.{ns}.play.steersman.dev --timeout=60s
        $ timeout 60 sh -c 'until kubectl get flares; do sleep 0.1; done'
        kubectl get flares
        kubectl apply -f lamp-crd.yaml -f lamps.yaml
        """,
    ),
    Scenario(
        "scopes",
        """
        $ sed -i 's/lamp/beacon/g;s/Lamp/Beacon/g;s/\\[lm\\]/[bcn]/;s/lights/sea-lights/;s/Namespaced/Cluster/' lamp*.yaml
        # all at once is a moment too early
        kubectl apply -f lamp-crd.yaml -f lamps.yaml
        kubectl wait --for=condition=Established crd/beacons.{ns}.play.steersman.dev --timeout=60s
        $ timeout 60 sh -c 'until kubectl get beacons; do sleep 0.1; done'
        kubectl apply -f lamps.yaml
        kubectl get bcn
        kubectl get beacons -n default -o name
        kubectl get beacon desk -o yaml
        kubectl describe beacon roof
        kubectl api-resources --api-group={ns}.play.steersman.dev --namespaced=false
        kubectl apply -n default -f lamps.yaml
        kubectl create cm owned
        kubectl patch cm owned --type=merge -p '{"metadata":{"ownerReferences":[{"apiVersion":"{ns}.play.steersman.dev/v1","kind":"Beacon","name":"desk","uid":""}]}}'
        kubectl delete -f lamps.yaml
        """,
    ),
    Scenario(
        "names",
        _installed("lantern")
        + """
        $ sed 's/name: lanterns/name: lantern-sets/;s/plural: lanterns/plural: lantern-sets/' lamp-crd.yaml > second.yaml
        kubectl apply -f second.yaml
        kubectl wait --for=condition=NamesAccepted=false crd/lantern-sets.{ns}.play.steersman.dev --timeout=60s
        kubectl get crd lantern-sets.{ns}.play.steersman.dev -o jsonpath='{.status}'
        kubectl wait --for=condition=Established crd/lantern-sets.{ns}.play.steersman.dev --timeout=1s
        kubectl get lantern-sets
        kubectl delete crd lanterns.{ns}.play.steersman.dev
        kubectl wait --for=condition=Established crd/lantern-sets.{ns}.play.steersman.dev --timeout=60s
        $ timeout 60 sh -c 'until kubectl get lantern-sets; do sleep 0.1; done'
        kubectl get lantern-sets
        kubectl get crd lantern-sets.{ns}.play.steersman.dev -o jsonpath='{.status.acceptedNames}'
        """,
    ),
    Scenario(
        "tightened",
        _installed("glow")
        + """
        kubectl create -f lamps.yaml
        $ sed -i 's/maximum: 500/maximum: 50/;s/enum: .screw, pin./enum: [screw]/' lamp-crd.yaml
        kubectl diff -f lamp-crd.yaml
        kubectl apply -f lamp-crd.yaml
        $ while kubectl patch glow desk --type=merge -p '{"spec":{"watts":90}}' --dry-run=server; do sleep 0.1; done
        # what was stored before may stay
        kubectl label glow roof a=b
        kubectl patch glow roof --type=merge -p '{"spec":{"notes":{"wind":"weak"}}}'
        kubectl patch glow roof --type=merge -p '{"spec":{"watts":110}}'
        kubectl patch glow roof --type=merge -p '{"spec":{"watts":30,"socket":"none"}}'
        kubectl scale glow roof --replicas=3
        kubectl apply --server-side -f lamps.yaml 2>&1 | sort
        kubectl apply --server-side -f lamps.yaml --force-conflicts
        kubectl replace --force -f lamps.yaml 2>&1 | sort
        kubectl get glows
        """,
    ),
    Scenario(
        "rights-and-watches",
        _installed("star")
        + """
        kubectl create role reader --verb=get,list --resource=stars.{ns}.play.steersman.dev,stars.{ns}.play.steersman.dev/status
        kubectl create rolebinding readers --role=reader --user=kim
        kubectl auth can-i get stars --as kim
        kubectl auth can-i get stars --subresource=status --as kim
        kubectl auth can-i delete stars --as kim
        kubectl create -f lamps.yaml
        kubectl get stars --as kim --chunk-size=1 --sort-by=.spec.watts
        kubectl delete stars --all --as kim
        kubectl get stars --as lee
        & kubectl get stars -w --output-watch-events
        kubectl label star desk tier=front
        kubectl patch star desk --subresource=status --type=merge -p '{"status":{"lit":true}}'
        kubectl delete star roof
        &6
        """,
    ),
]
