package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/apis/rbac"
	"k8s.io/kubernetes/pkg/apis/storage"
)

var out = map[string][][]string{}

func name(t reflect.Type) string {
	p := t.PkgPath()
	return p[strings.LastIndex(p, "/")+1:] + "." + t.Name()
}

func describe(t, v reflect.Type) string {
	n := t.PkgPath() + "." + t.Name()
	switch n {
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Time":
		return "time"
	case "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":
		return "microtime"
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Duration":
		return "duration"
	case "k8s.io/apimachinery/pkg/api/resource.Quantity":
		return "quantity"
	case "k8s.io/apimachinery/pkg/util/intstr.IntOrString":
		return "intstr"
	case "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta", "k8s.io/apimachinery/pkg/apis/meta/v1.LabelSelector":
		return t.Name()
	}
	switch t.Kind() {
	case reflect.Ptr:
		if v != nil && v.Kind() == reflect.Ptr {
			v = v.Elem()
		}
		return "*" + describe(t.Elem(), v)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if v != nil && v.Kind() == reflect.Slice {
			v = v.Elem()
		}
		return "[]" + describe(t.Elem(), v)
	case reflect.Map:
		return "{}" + describe(t.Elem(), nil)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Struct:
		if v != nil && v.Kind() == reflect.Ptr {
			v = v.Elem()
		}
		walk(t, v)
		return name(t)
	default:
		return "int"
	}
}

func find(v reflect.Type, goName string) (string, reflect.Type) {
	if v == nil || v.Kind() != reflect.Struct {
		return "", nil
	}
	for i := 0; i < v.NumField(); i++ {
		f := v.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")[0]
		if f.Anonymous && tag == "" {
			if n, t := find(f.Type, goName); n != "" {
				return n, t
			}
			continue
		}
		if f.Name == goName {
			return tag, f.Type
		}
	}
	return "", nil
}

func fields(t, v reflect.Type) [][]string {
	var rows [][]string
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		if f.Anonymous && f.Type.Name() != "ObjectMeta" {
			ft := f.Type
			if ft.Name() == "TypeMeta" {
				rows = append(rows, []string{"kind", "string", "kind", "e"}, []string{"apiVersion", "string", "apiVersion", "e"})
				continue
			}
			rows = append(rows, fields(ft, v)...)
			continue
		}
		if f.Anonymous { // ObjectMeta without tag is inlined too
			rows = append(rows, []string{"", "ObjectMeta", "metadata", ""})
			continue
		}
		n, vt := find(v, f.Name)
		rows = append(rows, []string{f.Name, describe(f.Type, vt), n, ""})
	}
	return rows
}

func walk(t, v reflect.Type) {
	n := name(t)
	if _, ok := out[n]; ok {
		return
	}
	out[n] = nil
	out[n] = fields(t, v)
}

func main() {
	pair := func(a, b any) { walk(reflect.TypeOf(a), reflect.TypeOf(b)) }
	pair(core.PodTemplateSpec{}, corev1.PodTemplateSpec{})
	pair(core.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimSpec{})
	pair(core.ServicePort{}, corev1.ServicePort{})
	pair(core.ObjectReference{}, corev1.ObjectReference{})
	pair(core.EventSource{}, corev1.EventSource{})
	pair(core.PersistentVolumeClaim{}, corev1.PersistentVolumeClaim{})
	pair(core.PodIP{}, corev1.PodIP{})
	pair(core.HostIP{}, corev1.HostIP{})
	pair(core.ScopeSelector{}, corev1.ScopeSelector{})
	pair(apps.DeploymentStrategy{}, appsv1.DeploymentStrategy{})
	pair(apps.StatefulSetUpdateStrategy{}, appsv1.StatefulSetUpdateStrategy{})
	pair(apps.DaemonSetUpdateStrategy{}, appsv1.DaemonSetUpdateStrategy{})
	pair(batch.JobSpec{}, batchv1.JobSpec{})
	pair(certificates.PodCertificateRequestSpec{}, certificatesv1.PodCertificateRequestSpec{})
	pair(policy.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetSpec{})
	pair(rbac.RoleRef{}, rbacv1.RoleRef{})
	pair(core.PersistentVolumeSource{}, corev1.PersistentVolumeSource{})
	pair(core.NodeAddress{}, corev1.NodeAddress{})
	pair(core.Taint{}, corev1.Taint{})
	pair(autoscaling.HorizontalPodAutoscalerBehavior{}, autoscalingv2.HorizontalPodAutoscalerBehavior{})
	pair(flowcontrol.FlowDistinguisherMethod{}, flowcontrolv1.FlowDistinguisherMethod{})
	pair(networking.ParentReference{}, networkingv1.ParentReference{})
	pair(networking.ServiceCIDRSpec{}, networkingv1.ServiceCIDRSpec{})
	pair(storage.CSINodeDriver{}, storagev1.CSINodeDriver{})
	pair(storage.VolumeAttachmentSpec{}, storagev1.VolumeAttachmentSpec{})
	b, _ := json.Marshal(out)
	os.Stdout.Write(b)
}
