package main

import (
	"context"

	server "github.com/cert-manager/cert-manager/internal/webhook"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/webhook/options"
	"github.com/spf13/pflag"
)

// webhook serves validation and mutation, with cert-manager's own flags.
func webhook(ctx context.Context, flags *pflag.FlagSet, arguments []string) error {
	configuration, err := options.NewWebhookConfiguration()
	if err != nil {
		return err
	}
	options.AddConfigFlags(flags, configuration)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if err := logf.ValidateAndApply(&configuration.Logging); err != nil {
		return err
	}
	running, err := server.NewCertManagerWebhookServer(logf.FromContext(ctx), *configuration)
	if err != nil {
		return err
	}
	return running.Run(ctx)
}
