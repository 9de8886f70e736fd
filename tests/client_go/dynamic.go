package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
)

var dynamicChecks = []check{
	{"dynamic/sites", dynamicSites},
	{"dynamic/refusals", dynamicRefusals},
	{"dynamic/config-maps", dynamicConfigMaps},
}

var metadataChecks = []check{
	{"metadata/config-maps", func(s *scene) { partial(s, configMapsResource, s.configMap) }},
	{"metadata/sites", func(s *scene) { partial(s, sitesResource, s.site) }},
}

var scaleChecks = []check{{"scale/client", scaleClient}}

var (
	configMapsResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	// sitesResource is a custom resource, which both servers get.
	sitesResource = schema.GroupVersionResource{Group: "web.test.steersman.dev", Version: "v1", Resource: "sites"}
)

func (s *scene) tree(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	content := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{
			"name": s.named(name), "namespace": s.namespace, "labels": map[string]any{"check": s.prefix},
		},
	}
	for field, value := range more {
		content[field] = value
	}
	return &unstructured.Unstructured{Object: content}
}

func (s *scene) site(name string) *unstructured.Unstructured {
	return s.tree(
		sitesResource.GroupVersion().String(),
		"Site",
		name,
		map[string]any{"spec": map[string]any{"image": "nginx:1.27"}},
	)
}

func (s *scene) configMap(name string) *unstructured.Unstructured {
	return s.tree("v1", "ConfigMap", name, map[string]any{"data": map[string]any{"k": "v"}})
}

func (s *scene) dynamic() dynamic.Interface {
	return got(dynamic.NewForConfig(s.config)).made(s, "making a dynamic client")
}

func dynamicSites(s *scene) {
	sites := s.dynamic().Resource(sitesResource).Namespace(s.namespace)
	first := got(sites.Create(s.ctx, s.site("a"), toCreate)).shown(s, "created")
	got(sites.Get(s.ctx, first.GetName(), toGet)).shown(s, "got")
	second := first.DeepCopy()
	s.must(unstructured.SetNestedField(second.Object, int64(3), "spec", "replicas"), "changing")
	s.must(
		unstructured.SetNestedField(
			second.Object, map[string]any{"any": []any{true, "x", int64(1), 1.5, nil}}, "spec", "settings",
		),
		"changing",
	)
	s.must(unstructured.SetNestedField(second.Object, int64(9), "status", "replicas"), "changing")
	second = got(sites.Update(s.ctx, second, toUpdate)).shown(s, "updated, status aside")
	s.must(
		unstructured.SetNestedMap(
			second.Object, map[string]any{"replicas": int64(2), "readyReplicas": int64(1)}, "status",
		),
		"changing",
	)
	s.must(unstructured.SetNestedField(second.Object, int64(9), "spec", "replicas"), "changing")
	got(sites.UpdateStatus(s.ctx, second, toUpdate)).shown(s, "status updated, spec aside")
	got(sites.Patch(
		s.ctx,
		first.GetName(),
		merge,
		[]byte(`{"spec":{"mode":"dynamic","settings":null,"ports":[{"name":"a","port":80}]}}`),
		toPatch,
	)).shown(s, "merged")
	got(sites.Patch(
		s.ctx,
		first.GetName(),
		operations,
		[]byte(`[{"op":"replace","path":"/status/readyReplicas","value":2}]`),
		toPatch,
		"status",
	)).shown(s, "json patch of status")
	got(sites.Get(s.ctx, first.GetName(), toGet, "scale")).shown(s, "scale")
	for number := range 4 {
		got(sites.Create(s.ctx, s.site(fmt.Sprint(number)), toCreate)).made(s, "creating")
	}
	page := got(sites.List(s.ctx, metav1.ListOptions{LabelSelector: s.selector(), Limit: 3})).made(s, "listing")
	s.say(
		"%s %s of %d, goes on: %t, remaining: %v",
		page.GetAPIVersion(),
		page.GetKind(),
		len(page.Items),
		page.GetContinue() != "",
		page.GetRemainingItemCount() != nil,
	)
	watching := got(sites.Watch(
		s.ctx, metav1.ListOptions{LabelSelector: s.selector(), ResourceVersion: page.GetResourceVersion()},
	)).made(s, "watching")
	s.must(sites.Delete(s.ctx, first.GetName(), toDelete), "deleting")
	event := s.next(watching)
	s.show(string(event.Type), event.Object)
	watching.Stop()
	s.must(sites.DeleteCollection(s.ctx, toDelete, s.mine()), "deleting all")
	left := got(sites.List(s.ctx, s.mine())).made(s, "listing")
	s.say("left: %d", len(left.Items))
}

func dynamicRefusals(s *scene) {
	sites := s.dynamic().Resource(sitesResource).Namespace(s.namespace)
	first := got(sites.Create(s.ctx, s.site("a"), toCreate)).made(s, "creating")
	_, err := sites.Create(s.ctx, s.site("a"), toCreate)
	s.refused("created twice", err)
	_, err = sites.Get(s.ctx, s.named("none"), toGet)
	s.refused("got what is not there", err)
	for _, spec := range []map[string]any{
		{"image": "x", "replicas": int64(51)},
		{"image": int64(3)},
		{},
		{"image": "x", "mode": "fast"},
	} {
		broken := s.site("broken")
		broken.Object["spec"] = spec
		_, err = sites.Create(s.ctx, broken, toCreate)
		s.refused(fmt.Sprint(spec), err)
	}
	strange := s.site("strange")
	s.must(unstructured.SetNestedField(strange.Object, "x", "spec", "unknown"), "changing")
	_, err = sites.Create(s.ctx, strange, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	s.refused("a field that there is not", err)
	got(sites.Create(
		s.ctx, strange, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore},
	)).shown(s, "without it")
	_, err = sites.Patch(s.ctx, first.GetName(), strategic, []byte(`{}`), toPatch)
	s.recognized("a strategic merge patch", err)
	first.SetResourceVersion("")
	_, err = sites.Update(s.ctx, first, toUpdate)
	s.refused("an update without a version", err)
	_, err = s.dynamic().Resource(sitesResource.GroupVersion().WithResource("yachts")).List(s.ctx, metav1.ListOptions{})
	s.refused("a resource that there is not", err)
}

func dynamicConfigMaps(s *scene) {
	maps := s.dynamic().Resource(configMapsResource).Namespace(s.namespace)
	first := got(maps.Create(s.ctx, s.configMap("a"), toCreate)).shown(s, "created")
	got(maps.Patch(s.ctx, first.GetName(), strategic, []byte(`{"data":{"more":"x"}}`), toPatch)).shown(s, "patched")
	found := got(maps.List(s.ctx, s.mine())).made(s, "listing")
	for number := range found.Items {
		s.show("listed", found.Items[number].Object)
	}
	typed := got(s.client.CoreV1().ConfigMaps(s.namespace).Get(s.ctx, first.GetName(), toGet)).made(s, "getting")
	s.say("the same object: %t", typed.UID == first.GetUID() && typed.Data["more"] == "x")
}

func partial(s *scene, resource schema.GroupVersionResource, object func(string) *unstructured.Unstructured) {
	all := got(
		metadata.NewForConfig(s.config),
	).made(s, "making a metadata client").Resource(resource).Namespace(s.namespace)
	whole := s.dynamic().Resource(resource).Namespace(s.namespace)
	first := got(whole.Create(s.ctx, object("a"), toCreate)).made(s, "creating")
	watching := got(all.Watch(
		s.ctx,
		metav1.ListOptions{
			LabelSelector: s.selector(), ResourceVersion: first.GetResourceVersion(), AllowWatchBookmarks: true,
		},
	)).made(s, "watching")
	found := got(all.Get(s.ctx, first.GetName(), toGet)).shown(s, "got")
	s.say("the same object: %t", found.UID == first.GetUID() && found.ResourceVersion == first.GetResourceVersion())
	for _, each := range got(all.List(s.ctx, s.mine())).made(s, "listing").Items {
		// JSON names it in each item, protobuf does not
		each.TypeMeta = metav1.TypeMeta{}
		s.show("listed", each)
	}
	got(all.Patch(
		s.ctx, first.GetName(), merge, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), toPatch,
	)).shown(s, "patched")
	s.must(all.Delete(s.ctx, first.GetName(), toDelete), "deleting")
	for range 2 {
		event := s.next(watching)
		s.show(string(event.Type), event.Object)
	}
	watching.Stop()
	_, err := all.Get(s.ctx, first.GetName(), toGet)
	s.refused("deleted", err)
}

func scaleClient(s *scene) {
	groups := got(restmapper.GetAPIGroupResources(s.client.Discovery())).made(s, "discovering")
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	scales := got(scale.NewForConfig(
		s.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(s.client.Discovery()),
	)).made(s, "making a scale client").Scales(s.namespace)
	_, err := s.client.AppsV1().Deployments(s.namespace).Create(s.ctx, s.deployment("a"), toCreate)
	s.must(err, "creating")
	_, err = s.dynamic().Resource(sitesResource).Namespace(s.namespace).Create(s.ctx, s.site("a"), toCreate)
	s.must(err, "creating")
	for _, resource := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"}, sitesResource,
	} {
		found := got(scales.Get(s.ctx, resource.GroupResource(), s.named("a"), toGet)).shown(s, "scale")
		found.Spec.Replicas = 4
		got(scales.Update(s.ctx, resource.GroupResource(), found, toUpdate)).shown(s, "updated")
		got(scales.Patch(
			s.ctx, resource, s.named("a"), merge, []byte(`{"spec":{"replicas":2}}`), toPatch,
		)).shown(s, "patched")
		found.Spec.Replicas = 7
		_, err = scales.Update(s.ctx, resource.GroupResource(), found, toUpdate)
		s.refused("an old version", err)
	}
}
