package main

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var typedChecks = []check{
	{"typed/config-maps", configMaps},
	{"typed/refusals", refusals},
	{"typed/secrets", secrets},
	{"typed/leases", leases},
	{"typed/services", services},
	{"typed/namespaces", namespaces},
}

var moment = time.Date(2001, 2, 3, 4, 5, 6, 789000000, time.UTC)

func configMaps(s *scene) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	a := &corev1.ConfigMap{
		ObjectMeta: s.meta("a"),
		Data:       map[string]string{"k": "v", "empty": ""},
		BinaryData: map[string][]byte{"b": {0, 255}},
	}
	a.Annotations = map[string]string{"note": "words <&> ünïcode"}
	got(maps.Create(s.ctx, a, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})).shown(s, "tried")
	first := got(maps.Create(s.ctx, a, toCreate)).shown(s, "created")
	s.say(
		"has a uid: %t, a version: %t, a time: %t",
		first.UID != "",
		first.ResourceVersion != "",
		time.Since(first.CreationTimestamp.Time) < time.Hour,
	)
	got(maps.Get(s.ctx, a.Name, toGet)).shown(s, "got")

	changed := first.DeepCopy()
	changed.Data["k"] = "w"
	second := got(maps.Update(s.ctx, changed, toUpdate)).shown(s, "updated")
	s.say(
		"another version: %t, the same uid: %t",
		second.ResourceVersion != first.ResourceVersion,
		second.UID == first.UID,
	)
	same := got(maps.Update(s.ctx, second, toUpdate)).made(s, "updating without a change")
	s.say("without a change, the same version: %t", same.ResourceVersion == second.ResourceVersion)

	got(maps.Patch(s.ctx, a.Name, merge, []byte(`{"data":{"k":null,"merged":"1"}}`), toPatch)).shown(s, "merge")
	got(maps.Patch(
		s.ctx,
		a.Name,
		strategic,
		[]byte(`{"metadata":{"labels":{"x":"y"}},"data":{"$patch":"replace","only":"this"}}`),
		toPatch,
	)).shown(s, "strategic")
	got(maps.Patch(
		s.ctx,
		a.Name,
		operations,
		[]byte(
			`[{"op":"test","path":"/data/only","value":"this"},{"op":"move","from":"/data/only","path":"/data/moved"}]`,
		),
		toPatch,
	)).shown(s, "json")

	named := got(maps.Create(
		s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: s.named("g-")}}, toCreate,
	)).made(s, "generating a name")
	s.say(
		"a name was generated: %t, %d more",
		strings.HasPrefix(named.Name, s.named("g-")),
		len(named.Name)-len(s.named("g-")),
	)
	s.must(maps.Delete(s.ctx, named.Name, toDelete), "deleting")
	s.must(
		maps.Delete(s.ctx, a.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(first.UID))}),
		"deleting",
	)
	_, err := maps.Get(s.ctx, a.Name, toGet)
	s.refused("deleted", err)
}

func refusals(s *scene) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	fixed := &corev1.ConfigMap{ObjectMeta: s.meta("fixed"), Immutable: ptr.To(true), Data: map[string]string{"k": "v"}}
	first := got(maps.Create(s.ctx, fixed, toCreate)).made(s, "creating")
	_, err := maps.Create(s.ctx, fixed, toCreate)
	s.refused("created twice", err)
	_, err = maps.Get(s.ctx, s.named("none"), toGet)
	s.refused("got what is not there", err)
	_, err = maps.Update(s.ctx, &corev1.ConfigMap{ObjectMeta: s.meta("none")}, toUpdate)
	s.refused("updated what is not there", err)
	_, err = maps.Patch(s.ctx, s.named("none"), merge, []byte(`{}`), toPatch)
	s.refused("patched what is not there", err)
	s.refused("deleted what is not there", maps.Delete(s.ctx, s.named("none"), toDelete))

	changed := first.DeepCopy()
	changed.Data["k"] = "w"
	_, err = maps.Update(s.ctx, changed, toUpdate)
	s.refused("changed what is immutable", err)
	relabeled := first.DeepCopy()
	relabeled.Labels["x"] = "y"
	got(maps.Update(s.ctx, relabeled, toUpdate)).made(s, "labeling")
	_, err = maps.Update(s.ctx, relabeled, toUpdate)
	s.refused("updated an old version", err)
	other := first.DeepCopy()
	other.UID = "11111111-2222-3333-4444-555555555555"
	other.ResourceVersion = ""
	_, err = maps.Update(s.ctx, other, toUpdate)
	s.refused("updated another's uid", err)
	s.refused(
		"deleted another's uid",
		maps.Delete(
			s.ctx, fixed.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(other.UID))},
		),
	)
	_, err = maps.Patch(
		s.ctx, fixed.Name, operations, []byte(`[{"op":"test","path":"/data/k","value":"other"}]`), toPatch,
	)
	s.refused("a test of a patch", err)
	_, err = maps.Patch(
		s.ctx,
		fixed.Name,
		merge,
		[]byte(`{"dota":{}}`),
		metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict},
	)
	s.recognized("a field that there is not", err)

	_, err = maps.Create(
		s.ctx,
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "No Name", Labels: map[string]string{"-": "?"}},
			Data:       map[string]string{"not a key": ""},
		},
		toCreate,
	)
	s.refused("invalid in many ways", err)
	_, err = s.client.CoreV1().ConfigMaps("no-such-namespace").Create(
		s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, toCreate,
	)
	s.refused("in a namespace that there is not", err)
	_, err = maps.Create(
		s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default-other"}}, toCreate,
	)
	s.refused("in two namespaces", err)
	_, err = maps.Create(
		s.ctx,
		&corev1.ConfigMap{ObjectMeta: s.meta("big"), Data: map[string]string{"k": strings.Repeat("x", 1<<20+1)}},
		toCreate,
	)
	s.refused("too much data", err)
	_, err = maps.List(s.ctx, metav1.ListOptions{LabelSelector: "a in b"})
	s.refused("a selector that is none", err)
}

func secrets(s *scene) {
	all := s.client.CoreV1().Secrets(s.namespace)
	a := &corev1.Secret{
		ObjectMeta: s.meta("a"),
		StringData: map[string]string{"user": "kim"},
		Data:       map[string][]byte{"user": []byte("overridden"), "blob": {1, 2, 254}},
	}
	first := got(all.Create(s.ctx, a, toCreate)).shown(s, "created")
	first.Type = corev1.SecretTypeBasicAuth
	_, err := all.Update(s.ctx, first, toUpdate)
	s.refused("another type", err)
	_, err = all.Create(
		s.ctx, &corev1.Secret{ObjectMeta: s.meta("docker"), Type: corev1.SecretTypeDockerConfigJson}, toCreate,
	)
	s.refused("without what its type needs", err)
	got(all.Patch(s.ctx, a.Name, strategic, []byte(`{"stringData":{"more":"text"}}`), toPatch)).shown(s, "patched")
	got(all.List(
		s.ctx, metav1.ListOptions{LabelSelector: s.selector(), FieldSelector: "type=Opaque"},
	)).shown(s, "by type")
	s.must(all.Delete(s.ctx, a.Name, toDelete), "deleting")
}

func leases(s *scene) {
	all := s.client.CoordinationV1().Leases(s.namespace)
	at := metav1.NewMicroTime(moment)
	a := &coordinationv1.Lease{
		ObjectMeta: s.meta("a"),
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("kim"), LeaseDurationSeconds: ptr.To[int32](15), AcquireTime: &at, RenewTime: &at,
		},
	}
	first := got(all.Create(s.ctx, a, toCreate)).shown(s, "created")
	later := metav1.NewMicroTime(moment.Add(1500 * time.Microsecond))
	first.Spec.RenewTime = &later
	got(all.Update(s.ctx, first, toUpdate)).shown(s, "renewed")
	a.Name = s.named("b")
	a.Spec.LeaseDurationSeconds = ptr.To[int32](0)
	_, err := all.Create(s.ctx, a, toCreate)
	s.refused("no duration", err)
	got(all.List(s.ctx, s.mine())).shown(s, "listed")
	s.must(all.Delete(s.ctx, first.Name, toDelete), "deleting")
}

func services(s *scene) {
	all := s.client.CoreV1().Services(s.namespace)
	a := &corev1.Service{
		ObjectMeta: s.meta("a"),
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "a"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	first := got(all.Create(s.ctx, a, toCreate)).made(s, "creating")
	address := first.Spec.ClusterIP
	s.say("has an address: %t, one: %d", address != "", len(first.Spec.ClusterIPs))
	blank := func(service *corev1.Service) *corev1.Service {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
		return service
	}
	s.show("created", blank(first.DeepCopy()))
	first.Spec.Ports = append(first.Spec.Ports, corev1.ServicePort{Name: "more", Port: 81})
	_, err := all.Update(s.ctx, first, toUpdate)
	s.refused("a port without a name", err)
	first.Spec.Ports[0].Name = "web"
	second := got(all.Update(s.ctx, first, toUpdate)).made(s, "updating")
	s.say("the same address: %t", second.Spec.ClusterIP == address)
	s.show("updated", blank(second.DeepCopy()))
	second.Spec.ClusterIP, second.Spec.ClusterIPs = "10.0.0.77", []string{"10.0.0.77"}
	if address != "10.0.0.77" {
		_, err = all.Update(s.ctx, second, toUpdate)
		if err == nil {
			panic(failure{"an address was changed"})
		}
	}
	got(all.Create(
		s.ctx,
		&corev1.Service{
			ObjectMeta: s.meta("b"),
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "a"}},
		},
		toCreate,
	)).shown(s, "headless")
	s.must(all.Delete(s.ctx, a.Name, toDelete), "deleting")
}

func namespaces(s *scene) {
	all := s.client.CoreV1().Namespaces()
	name := s.namespace + "-own"
	got(all.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, toCreate)).shown(s, "created")
	s.must(all.Delete(s.ctx, name, toDelete), "deleting")
	ending := got(all.Get(s.ctx, name, toGet)).shown(s, "deleted")
	_, err := s.client.CoreV1().ConfigMaps(name).Create(
		s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, toCreate,
	)
	s.refused("created in it", err)
	ending.Spec.Finalizers = nil
	got(all.Finalize(s.ctx, ending, toUpdate)).shown(s, "finalized")
	_, err = all.Get(s.ctx, name, toGet)
	s.refused("gone", err)
}
