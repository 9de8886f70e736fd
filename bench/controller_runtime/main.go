// The converge benchmark's work, written with controller-runtime: a ConfigMap by server-side apply and a status, for
// every Site. As it comes, or with -tuned as an expert would write it: without the priority queue, which lets echoes
// overtake the initial list, and with a comparison by hand that leaves out an apply which would change nothing.
//
// On SIGUSR1 it prints how often it reconciled.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

var reconciles atomic.Int64

type SiteReconciler struct {
	client.Client
	tuned bool
}

func (r *SiteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	reconciles.Add(1)
	var site Site
	if err := r.Get(ctx, req.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	data := map[string]string{
		"image":      site.Spec.Image,
		"replicas":   strconv.FormatInt(site.Spec.Replicas, 10),
		"index.html": "<h1>" + site.Spec.Message + "</h1>",
	}
	if !r.tuned || !r.isAsWanted(ctx, &site, data) {
		page := corev1ac.ConfigMap(site.Name, site.Namespace).WithData(data).
			WithOwnerReferences(metav1ac.OwnerReference().
				WithAPIVersion(groupVersion.String()).WithKind("Site").WithName(site.Name).WithUID(site.UID).
				WithController(true).WithBlockOwnerDeletion(true))
		if err := r.Apply(ctx, page, client.FieldOwner("sites"), client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
	}
	want := SiteStatus{ObservedGeneration: site.Generation, ReadyReplicas: site.Spec.Replicas}
	if site.Status != want {
		before := site.DeepCopy()
		site.Status = want
		if err := r.Status().Patch(ctx, &site, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	return ctrl.Result{}, nil
}

func (r *SiteReconciler) isAsWanted(ctx context.Context, site *Site, data map[string]string) bool {
	var have corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKeyFromObject(site), &have)
	return err == nil && maps.Equal(have.Data, data) && metav1.IsControlledBy(&have, site)
}

func run(tuned bool) error {
	types := scheme.Scheme
	types.AddKnownTypes(groupVersion, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(types, groupVersion)
	config := ctrl.GetConfigOrDie()
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: types, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	options := controller.Options{MaxConcurrentReconciles: 16}
	if tuned {
		options.UsePriorityQueue = new(false)
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Site{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(options).
		Complete(&SiteReconciler{manager.GetClient(), tuned})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func printReconciles() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	for range asked {
		fmt.Println("reconciles", reconciles.Load())
	}
}

func main() {
	tuned := flag.Bool("tuned", false, "without the priority queue, and without an apply that would change nothing")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	go printReconciles()
	if err := run(*tuned); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
