package main

import (
	"reflect"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Adds the definition of a struct and of all structs in it, from their JSON tags.
func define(found map[string]common.OpenAPIDefinition, ref common.ReferenceCallback, value any) {
	defineType(found, ref, reflect.TypeOf(value))
}

func defineType(found map[string]common.OpenAPIDefinition, ref common.ReferenceCallback, each reflect.Type) {
	name := each.PkgPath() + "." + each.Name()
	if _, known := found[name]; known {
		return
	}
	definition := common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"object"}, Properties: map[string]spec.Schema{},
	}}}
	found[name] = definition
	for index := range each.NumField() {
		field := each.Field(index)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == "" {
			for _, inlined := range []string{"kind", "apiVersion"} {
				definition.Schema.Properties[inlined] = *spec.StringProperty()
			}
			continue
		}
		schema := schemaOf(found, ref, field.Type, &definition)
		if schema.Ref.String() != "" {
			schema = spec.Schema{SchemaProps: spec.SchemaProps{Default: map[string]any{}, AllOf: []spec.Schema{schema}}}
		}
		definition.Schema.Properties[tag] = schema
	}
	found[name] = definition
}

func schemaOf(
	found map[string]common.OpenAPIDefinition, ref common.ReferenceCallback, each reflect.Type,
	owner *common.OpenAPIDefinition,
) spec.Schema {
	switch each.Kind() {
	case reflect.Pointer:
		return schemaOf(found, ref, each.Elem(), owner)
	case reflect.Slice:
		items := schemaOf(found, ref, each.Elem(), owner)
		return *spec.ArrayProperty(&items)
	case reflect.String:
		return *spec.StringProperty()
	case reflect.Bool:
		return *spec.BooleanProperty()
	case reflect.Int32, reflect.Int64:
		return *spec.Int64Property()
	default:
		name := each.PkgPath() + "." + each.Name()
		if each.PkgPath() == "main" {
			defineType(found, ref, each)
		}
		owner.Dependencies = append(owner.Dependencies, name)
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(name)}}
	}
}
