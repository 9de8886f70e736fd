package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/pkg/util/cmapichecker"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// startupapicheck ends when the server creates Certificates: the check of the chart's Job.
func startupapicheck(ctx context.Context, flags *pflag.FlagSet, arguments []string) error {
	kubeconfig := flags.String("kubeconfig", "", "")
	wait := flags.Duration("wait", 0, "")
	interval := flags.Duration("interval", time.Second, "")
	flags.BoolP("verbose", "v", false, "")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: *kubeconfig}, nil)
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return err
	}
	config, err := loaded.ClientConfig()
	if err != nil {
		return err
	}
	checker, err := cmapichecker.New(config, namespace)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *wait)
	defer cancel()
	for {
		err = checker.Check(ctx)
		if err == nil {
			fmt.Println("The cert-manager API is ready")
			return nil
		}
		fmt.Println("not ready:", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(*interval):
		}
	}
}
