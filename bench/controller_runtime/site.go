package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

type SiteSpec struct {
	Image    string `json:"image"`
	Replicas int64  `json:"replicas"`
	Message  string `json:"message"`
}

type SiteStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	ReadyReplicas      int64 `json:"readyReplicas,omitempty"`
}

type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SiteSpec   `json:"spec"`
	Status            SiteStatus `json:"status,omitempty"`
}

type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// What controller-gen would generate.

func (s *Site) DeepCopyInto(o *Site)           { *o = *s; s.ObjectMeta.DeepCopyInto(&o.ObjectMeta) }
func (s *Site) DeepCopy() *Site                { o := new(Site); s.DeepCopyInto(o); return o }
func (s *Site) DeepCopyObject() runtime.Object { return s.DeepCopy() }

func (l *SiteList) DeepCopyObject() runtime.Object {
	o := &SiteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]Site, len(l.Items))}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&o.Items[i])
	}
	return o
}
