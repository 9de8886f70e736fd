package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var discoveryChecks = []check{
	{"discovery/preferred", preferred},
	{"discovery/aggregated", func(s *scene) { groupsAndResources(s, s.client.Discovery()) }},
	{"discovery/legacy", func(s *scene) { groupsAndResources(s, s.client.Discovery().WithLegacy()) }},
	{"discovery/mapper", mapping},
	{"discovery/openapi", openAPI},
	{"discovery/version", serverVersion},
}

// unserved are subresources that need a node, or an issuer of certificates or tokens: the embedded server has none.
var unserved = regexp.MustCompile(`/(attach|ephemeralcontainers|exec|log|portforward|proxy|resize|token|approval)\b`)

// counts says whether a group is looked at: the engine has groups of other tests, and two that serve itself.
func counts(group string) bool {
	if group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io" {
		return false
	}
	return group == sitesResource.Group || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

func (s *scene) sayResources(lists []*metav1.APIResourceList) {
	slices.SortFunc(
		lists, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) },
	)
	for _, list := range lists {
		parsed := got(schema.ParseGroupVersion(list.GroupVersion)).made(s, "parsing")
		if !counts(parsed.Group) {
			continue
		}
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		for _, each := range list.APIResources {
			if unserved.MatchString(each.Name) {
				continue
			}
			// only the older form tells it
			each.StorageVersionHash = ""
			text, err := json.Marshal(each)
			s.must(err, "marshalling")
			s.say("%s: %s", list.GroupVersion, text)
		}
	}
}

// whole ends the check if discovery failed for a group that is looked at.
func (s *scene) whole(err error) {
	if failed, some := discovery.GroupDiscoveryFailedErrorGroups(err); some {
		for each := range failed {
			if counts(each.Group) {
				s.must(err, "discovering")
			}
		}
		return
	}
	s.must(err, "discovering")
}

func preferred(s *scene) {
	lists, err := s.client.Discovery().ServerPreferredResources()
	s.whole(err)
	s.sayResources(lists)
}

func groupsAndResources(s *scene, client discovery.DiscoveryInterface) {
	groups, lists, err := client.ServerGroupsAndResources()
	s.whole(err)
	for _, group := range groups {
		if counts(group.Name) {
			s.show("group", group)
		}
	}
	s.sayResources(lists)
	one := got(client.ServerResourcesForGroupVersion("coordination.k8s.io/v1")).made(s, "asking for one")
	s.say("of one: %s, %d", one.GroupVersion, len(one.APIResources))
	_, err = client.ServerResourcesForGroupVersion("none.example.com/v1")
	s.refused("a group that there is not", err)
}

func mapping(s *scene) {
	groups := got(restmapper.GetAPIGroupResources(s.client.Discovery())).made(s, "discovering")
	plain := restmapper.NewDiscoveryRESTMapper(groups)
	cached := memory.NewMemCacheClient(s.client.Discovery())
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	for _, mapper := range []meta.RESTMapper{plain, restmapper.NewShortcutExpander(deferred, cached, nil)} {
		for _, resource := range []string{
			"pods", "configmap", "deployments", "leases", "events", "sites", "site", "horizontalpodautoscalers",
		} {
			kinds := got(mapper.KindsFor(schema.GroupVersionResource{Resource: resource})).made(s, "kinds")
			s.say("%s: %v", resource, kinds)
		}
		for _, kind := range []schema.GroupKind{
			{Kind: "Pod"},
			{Kind: "Node"},
			{Group: "apps", Kind: "Deployment"},
			{Group: sitesResource.Group, Kind: "Site"},
			{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		} {
			mapped := got(mapper.RESTMapping(kind)).made(s, "mapping")
			s.say("%s: %s, %s", kind, mapped.Resource, mapped.Scope.Name())
		}
		_, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Yacht"})
		s.say("no such kind: %t", meta.IsNoMatchError(err))
	}
	shortcuts := restmapper.NewShortcutExpander(deferred, cached, nil)
	for _, short := range []string{"po", "cm", "deploy", "svc", "ns", "pvc", "st", "sts", "hpa"} {
		s.say("%s: %s", short, got(shortcuts.ResourceFor(schema.GroupVersionResource{Resource: short})).made(s, short))
	}
	expanded, _ := restmapper.NewDiscoveryCategoryExpander(s.client.Discovery()).Expand("all")
	expanded = slices.DeleteFunc(expanded, func(each schema.GroupResource) bool { return !counts(each.Group) })
	slices.SortFunc(expanded, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	s.say("all: %v", expanded)
}

func openAPI(s *scene) {
	root := openapi3.NewRoot(s.client.Discovery().OpenAPIV3())
	versions := got(root.GroupVersions()).made(s, "listing documents")
	for _, each := range versions {
		if counts(each.Group) {
			s.say("a document of %s", each)
		}
	}
	for _, each := range []schema.GroupVersion{
		{Version: "v1"},
		{Group: "apps", Version: "v1"},
		{Group: "coordination.k8s.io", Version: "v1"},
		sitesResource.GroupVersion(),
	} {
		document := got(root.GVSpec(each)).made(s, "getting a document")
		for _, path := range slices.Sorted(maps.Keys(document.Paths.Paths)) {
			if !strings.Contains(path, "/watch/") && !strings.HasSuffix(path, "/") && !unserved.MatchString(path) {
				s.say("%s: path %s %s", each, path, actions(document.Paths.Paths[path]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(document.Components.Schemas)) {
			if !strings.Contains(name, "apimachinery") && !strings.HasPrefix(name, "io.k8s.api.authentication") {
				s.sayFields(name, document.Components.Schemas[name])
			}
		}
	}
}

// actions are the methods of a path that a document describes.
func actions(path *spec3.Path) []string {
	var found []string
	for _, each := range []struct {
		method    string
		operation *spec3.Operation
	}{{"get", path.Get}, {"put", path.Put}, {"post", path.Post}, {"patch", path.Patch}, {"delete", path.Delete}} {
		if each.operation != nil {
			found = append(found, each.method)
		}
	}
	return found
}

// sayFields keeps what clients read of a schema: the fields, their types, and how they merge.
func (s *scene) sayFields(name string, node *spec.Schema) {
	for _, field := range slices.Sorted(maps.Keys(node.Properties)) {
		property := node.Properties[field]
		var hints []string
		for _, hint := range slices.Sorted(maps.Keys(property.Extensions)) {
			hints = append(hints, fmt.Sprintf("%s=%v", hint, property.Extensions[hint]))
		}
		s.say(
			"%s.%s: %v %s %t %v",
			name,
			field,
			property.Type,
			property.Format,
			slices.Contains(node.Required, field),
			hints,
		)
	}
	s.say("%s: %v %v", name, node.Type, node.Extensions["x-kubernetes-group-version-kind"])
}

func serverVersion(s *scene) {
	found := got(s.client.Discovery().ServerVersion()).made(s, "asking")
	s.say(
		"version %s.%s, as text too: %t",
		found.Major,
		found.Minor,
		strings.HasPrefix(found.GitVersion, "v"+found.Major+"."+found.Minor+"."),
	)
}
