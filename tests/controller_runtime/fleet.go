package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "fleet.example.com", Version: "v1"}

// ShipSpec is the desired state of a ship.
type ShipSpec struct {
	Image    string `json:"image"`
	Replicas *int32 `json:"replicas,omitempty"`
	// Chart names a ConfigMap of the same namespace, whose content the Pods depend on.
	Chart string `json:"chart,omitempty"`
	Class string `json:"class,omitempty"`
}

// ShipStatus is what became of it.
type ShipStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	Selector           string             `json:"selector,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Ship is a program that runs as a Deployment, with a ConfigMap and a Service of its own.
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShipSpec   `json:"spec"`
	Status            ShipStatus `json:"status,omitempty"`
}

// ShipList is a list of ships.
type ShipList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Ship `json:"items"`
}

// What controller-gen would generate.

// DeepCopyInto copies a ship into another.
func (s *Ship) DeepCopyInto(o *Ship) {
	*o = *s
	s.ObjectMeta.DeepCopyInto(&o.ObjectMeta)
	if s.Spec.Replicas != nil {
		replicas := *s.Spec.Replicas
		o.Spec.Replicas = &replicas
	}
	o.Status.Conditions = make([]metav1.Condition, len(s.Status.Conditions))
	for i := range s.Status.Conditions {
		s.Status.Conditions[i].DeepCopyInto(&o.Status.Conditions[i])
	}
}

// DeepCopy is a copy of a ship.
func (s *Ship) DeepCopy() *Ship { o := new(Ship); s.DeepCopyInto(o); return o }

// DeepCopyObject is a copy of a ship, as an object.
func (s *Ship) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopyObject is a copy of a list.
func (l *ShipList) DeepCopyObject() runtime.Object {
	o := &ShipList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]Ship, len(l.Items))}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&o.Items[i])
	}
	return o
}
