// Program controller_runtime is an operator as people write them with controller-runtime: a kind of its own, owned
// objects by update and by server-side apply, a finalizer, conditions, events, an index, and one leader.
//
// The server gets what every other server gets; only bodies are JSON. When it leads, it says so on its output.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func run(namespace string) error {
	types := scheme.Scheme
	types.AddKnownTypes(groupVersion, &Ship{}, &ShipList{})
	metav1.AddToGroupVersion(types, groupVersion)
	config := ctrl.GetConfigOrDie()
	config.ContentType = "application/json"
	lease, renew, again := 5*time.Second, 4*time.Second, 300*time.Millisecond
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        types,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElection:                true,
		LeaderElectionID:              "fleet-operator",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &again,
	})
	if err != nil {
		return err
	}
	reconciler := &shipReconciler{Client: manager.GetClient(), recorder: manager.GetEventRecorder("fleet-operator")}
	if err := reconciler.setUp(manager); err != nil {
		return err
	}
	go func() {
		<-manager.Elected()
		fmt.Println("leading")
	}()
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	namespace := flag.String("namespace", "default", "namespace to work in")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	if err := run(*namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
