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
	"k8s.io/apimachinery/pkg/runtime"
)

type field struct {
	name string
	desc string
}

var out = map[string][][]string{}

func name(t reflect.Type) string {
	p := t.PkgPath()
	p = strings.Replace(p, "k8s.io/", "io.k8s.", 1)
	return strings.ReplaceAll(p, "/", ".") + "." + t.Name()
}

func describe(t reflect.Type) string {
	switch name(t) {
	case "io.k8s.apimachinery.pkg.apis.meta.v1.Time":
		return "time"
	case "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":
		return "microtime"
	case "io.k8s.apimachinery.pkg.apis.meta.v1.Duration":
		return "duration"
	case "io.k8s.apimachinery.pkg.api.resource.Quantity":
		return "quantity"
	case "io.k8s.apimachinery.pkg.util.intstr.IntOrString":
		return "intstr"
	case "io.k8s.apimachinery.pkg.runtime.RawExtension", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1":
		return "raw"
	}
	switch t.Kind() {
	case reflect.Ptr:
		return "*" + describe(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + describe(t.Elem())
	case reflect.Map:
		return "{}" + describe(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Struct:
		walk(t)
		return name(t)
	case reflect.Float64, reflect.Float32:
		return "float"
	default:
		return "int"
	}
}

func fields(t reflect.Type) [][]string {
	var rows [][]string
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		inline := f.Anonymous && tag[0] == ""
		if inline {
			rows = append(rows, fields(f.Type)...)
			continue
		}
		if tag[0] == "-" || tag[0] == "" {
			continue
		}
		omit := ""
		for _, o := range tag[1:] {
			if o == "omitempty" || o == "omitzero" {
				omit += o[4:5]
			}
		}
		rows = append(rows, []string{tag[0], describe(f.Type), omit})
	}
	return rows
}

func walk(t reflect.Type) {
	n := name(t)
	if _, ok := out[n]; ok {
		return
	}
	out[n] = nil
	out[n] = fields(t)
}

func main() {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admission.AddToScheme, apps.AddToScheme, authn.AddToScheme, authz.AddToScheme, as1.AddToScheme, as2.AddToScheme, batch.AddToScheme, certs.AddToScheme, coord.AddToScheme, core.AddToScheme, disc.AddToScheme, events.AddToScheme, flow.AddToScheme, net.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme, res.AddToScheme, sched.AddToScheme, storage.AddToScheme, migration.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for gvk, t := range s.AllKnownTypes() {
		if strings.HasPrefix(t.PkgPath(), "k8s.io/api/") && gvk.Version != "__internal" {
			walk(t)
		}
	}
	b, _ := json.MarshalIndent(out, "", " ")
	os.Stdout.Write(b)
}
