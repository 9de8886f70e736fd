package main

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/metrics"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	"github.com/cert-manager/cert-manager/pkg/healthz"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// controllers runs the controllers of certificates and of the issuers that need no other server.
// ACME, Vault and Venafi are left out: their clients would take most of the build.
func controllers(ctx context.Context, flags *pflag.FlagSet, arguments []string) error {
	kubeconfig := flags.String("kubeconfig", "", "")
	resources := flags.String("cluster-resource-namespace", "kube-system", "")
	namespace := flags.String("leader-election-namespace", "kube-system", "")
	retry := flags.Duration("leader-election-retry-period", 15*time.Second, "")
	address := flags.String("internal-healthz-listen-address", "127.0.0.1:9403", "")
	if err := parsed(flags, arguments); err != nil {
		return err
	}
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         *kubeconfig,
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: *resources},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return err
	}
	health := healthz.NewServer(20 * time.Second)
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return health.Start(ctx, listener) })
	group.Go(func() error { return lead(ctx, factory, *namespace, *retry, health) })
	return group.Wait()
}

// lead runs the controllers once this program is the leader, until the context ends.
func lead(ctx context.Context, factory *controller.ContextFactory, namespace string, retry time.Duration, health *healthz.Server) error {
	own, err := factory.Build("leader-election")
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "cert-manager-controller",
		own.Client.CoreV1(), own.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: host + "-external-cert-manager-controller", EventRecorder: own.Recorder})
	if err != nil {
		return err
	}
	elected := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:            lock,
			LeaseDuration:   60 * time.Second,
			RenewDeadline:   40 * time.Second,
			RetryPeriod:     retry,
			ReleaseOnCancel: true,
			WatchDog:        health.LeaderHealthzAdaptor,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { close(elected) },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
		return nil
	})
	select {
	case <-ctx.Done():
		return group.Wait()
	case <-elected:
	}
	for _, construct := range controller.Known() {
		running, err := construct(factory)
		if err != nil {
			return err
		}
		group.Go(func() error { return running.Run(5, ctx) })
	}
	own.SharedInformerFactory.Start(ctx.Done())
	own.KubeSharedInformerFactory.Start(ctx.Done())
	own.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}
