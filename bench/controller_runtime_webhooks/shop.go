package main

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

const group = "bench.example.com"

var (
	v1       = schema.GroupVersion{Group: group, Version: "v1"}
	v1alpha1 = schema.GroupVersion{Group: group, Version: "v1alpha1"}
)

type Item struct {
	Name  string `json:"name"`
	Price int64  `json:"price"`
}

type ShopSpec struct {
	Host      string `json:"host"`
	Image     string `json:"image,omitempty"`
	Replicas  int64  `json:"replicas"`
	Protected bool   `json:"protected,omitempty"`
	Items     []Item `json:"items,omitempty"`
}

// Shop is the version that the server stores.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShopSpec `json:"spec"`
}

// Hub marks the version to which the others are converted.
func (*Shop) Hub() {}

type OldItem struct {
	Name  string `json:"name"`
	Price string `json:"price"`
}

type OldShopSpec struct {
	Domain    string    `json:"domain"`
	Image     string    `json:"image,omitempty"`
	Count     int64     `json:"count"`
	Protected bool      `json:"protected,omitempty"`
	Items     []OldItem `json:"items,omitempty"`
}

// OldShop is the version of the first release.
type OldShop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldShopSpec `json:"spec"`
}

// ConvertTo converts to the stored version.
func (o *OldShop) ConvertTo(hub conversion.Hub) error {
	shop := hub.(*Shop)
	shop.ObjectMeta = o.ObjectMeta
	shop.Spec = ShopSpec{Host: o.Spec.Domain, Image: o.Spec.Image, Replicas: o.Spec.Count, Protected: o.Spec.Protected}
	for _, item := range o.Spec.Items {
		price, err := strconv.ParseInt(item.Price, 10, 64)
		if err != nil {
			return err
		}
		shop.Spec.Items = append(shop.Spec.Items, Item{Name: item.Name, Price: price})
	}
	return nil
}

// ConvertFrom converts from the stored version.
func (o *OldShop) ConvertFrom(hub conversion.Hub) error {
	shop := hub.(*Shop)
	o.ObjectMeta = shop.ObjectMeta
	o.Spec = OldShopSpec{Domain: shop.Spec.Host, Image: shop.Spec.Image, Count: shop.Spec.Replicas, Protected: shop.Spec.Protected}
	for _, item := range shop.Spec.Items {
		o.Spec.Items = append(o.Spec.Items, OldItem{Name: item.Name, Price: strconv.FormatInt(item.Price, 10)})
	}
	return nil
}

// What controller-gen would generate.

func (s *Shop) DeepCopyObject() runtime.Object {
	o := *s
	s.ObjectMeta.DeepCopyInto(&o.ObjectMeta)
	o.Spec.Items = append([]Item(nil), s.Spec.Items...)
	return &o
}

func (o *OldShop) DeepCopyObject() runtime.Object {
	c := *o
	o.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Items = append([]OldItem(nil), o.Spec.Items...)
	return &c
}
