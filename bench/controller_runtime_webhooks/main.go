// The webhooks of a Shop, written with controller-runtime: defaults, checks, and conversion from an older version.
// bench/contenders/steersman_shops.py does the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type shopDefaults struct{}

func (shopDefaults) Default(_ context.Context, shop *Shop) error {
	if shop.Spec.Image == "" {
		shop.Spec.Image = "nginx:1.27"
	}
	return nil
}

type shopChecks struct{}

func (shopChecks) ValidateCreate(_ context.Context, shop *Shop) (admission.Warnings, error) {
	return check(shop, nil)
}

func (shopChecks) ValidateUpdate(_ context.Context, old, shop *Shop) (admission.Warnings, error) {
	return check(shop, old)
}

func (shopChecks) ValidateDelete(_ context.Context, shop *Shop) (admission.Warnings, error) {
	if shop.Spec.Protected {
		return nil, fmt.Errorf("the shop is protected")
	}
	return nil, nil
}

func check(shop, old *Shop) (admission.Warnings, error) {
	spec := field.NewPath("spec")
	var problems field.ErrorList
	if shop.Spec.Replicas > 50 {
		problems = append(problems, field.Invalid(spec.Child("replicas"), shop.Spec.Replicas, "must be at most 50"))
	}
	if old != nil && old.Spec.Host != shop.Spec.Host {
		problems = append(problems, field.Forbidden(spec.Child("host"), "may not change"))
	}
	for i, item := range shop.Spec.Items {
		if item.Price < 0 {
			problems = append(problems, field.Invalid(spec.Child("items").Index(i).Child("price"), item.Price, "must not be negative"))
		}
	}
	if len(problems) > 0 {
		return nil, apierrors.NewInvalid(v1.WithKind("Shop").GroupKind(), shop.Name, problems)
	}
	if shop.Spec.Replicas == 1 {
		return admission.Warnings{"one replica is not highly available"}, nil
	}
	return nil, nil
}

func run(port int, certificates string) error {
	types := scheme.Scheme
	types.AddKnownTypes(v1, &Shop{})
	types.AddKnownTypeWithName(v1alpha1.WithKind("Shop"), &OldShop{})
	metav1.AddToGroupVersion(types, v1)
	metav1.AddToGroupVersion(types, v1alpha1)
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:        types,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: certificates}),
	})
	if err != nil {
		return err
	}
	err = ctrl.NewWebhookManagedBy(manager, &Shop{}).WithDefaulter(shopDefaults{}).WithValidator(shopChecks{}).Complete()
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	port := flag.Int("port", 9443, "the port of the webhooks")
	certificates := flag.String("certificates", ".", "the folder with tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*port, *certificates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
