package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authn "k8s.io/api/authentication/v1"
	authz "k8s.io/api/authorization/v1"
	as1 "k8s.io/api/autoscaling/v1"
	as2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certs "k8s.io/api/certificates/v1"
	coord "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	disc "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flow "k8s.io/api/flowcontrol/v1"
	net "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	res "k8s.io/api/resource/v1"
	sched "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	migration "k8s.io/api/storagemigration/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// The output: for each type and field, the name of its Go type if it is named, and the structs that embed it; the fields
// that are omitted when they are zero; and those that are pointers.
var out = struct {
	Omitted  map[string][]string            `json:"omitted"`
	Pointers map[string][]string            `json:"pointers"`
	Types    map[string]map[string][]string `json:"types"`
}{map[string][]string{}, map[string][]string{}, map[string]map[string][]string{}}

var seen = map[reflect.Type]bool{}

func name(t reflect.Type) string {
	p := strings.Replace(t.PkgPath(), "k8s.io/", "io.k8s.", 1)
	return strings.ReplaceAll(p, "/", ".") + "." + t.Name()
}

// Whether a non-struct type is named.
func named(t reflect.Type) bool {
	return t.PkgPath() != "" && t.Kind() != reflect.Struct
}

func described(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Ptr:
		return described(t.Elem())
	case named(t):
		return t.String()
	case t.Kind() == reflect.Slice && named(t.Elem()), t.Kind() == reflect.Map && (named(t.Key()) || named(t.Elem())):
		return t.String()
	}
	return ""
}

func fields(of string, t reflect.Type, embedded []string) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if f.Anonymous && tag[0] == "" && f.Type.Kind() == reflect.Struct {
			if f.Name == "TypeMeta" {
				continue
			}
			fields(of, f.Type, append(append([]string{}, embedded...), f.Name))
			continue
		}
		if tag[0] == "-" || tag[0] == "" {
			continue
		}
		if go_ := described(f.Type); go_ != "" || len(embedded) > 0 {
			if out.Types[of] == nil {
				out.Types[of] = map[string][]string{}
			}
			out.Types[of][tag[0]] = append([]string{go_}, embedded...)
		}
		empties := f.Type.Kind() != reflect.Ptr && f.Type.Kind() != reflect.Struct
		for _, option := range tag[1:] {
			if empties && (option == "omitempty" || option == "omitzero") {
				out.Omitted[of] = append(out.Omitted[of], tag[0])
			}
		}
		if f.Type.Kind() == reflect.Ptr {
			out.Pointers[of] = append(out.Pointers[of], tag[0])
		}
		walk(f.Type)
	}
}

func walk(t reflect.Type) {
	for t.Kind() == reflect.Ptr || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "k8s.io/") && !seen[t] {
		seen[t] = true
		fields(name(t), t, nil)
	}
}

func main() {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admission.AddToScheme, apps.AddToScheme, authn.AddToScheme, authz.AddToScheme, as1.AddToScheme, as2.AddToScheme, batch.AddToScheme, certs.AddToScheme, coord.AddToScheme, core.AddToScheme, disc.AddToScheme, events.AddToScheme, flow.AddToScheme, net.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme, res.AddToScheme, sched.AddToScheme, storage.AddToScheme, migration.AddToScheme, extensions.AddToScheme, registration.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for gvk, t := range s.AllKnownTypes() {
		if gvk.Version != "__internal" {
			walk(t)
		}
	}
	b, _ := json.Marshal(out)
	os.Stdout.Write(b)
}
