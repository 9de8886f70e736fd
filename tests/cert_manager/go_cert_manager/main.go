// The programs of cert-manager's chart as one: `cert-manager webhook|cainjector|controller|startupapicheck FLAGS`.
//
// Each starts cert-manager's own code with the flags of the chart. Flags of parts that are left out are ignored.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

var programs = map[string]func(ctx context.Context, flags *pflag.FlagSet, arguments []string) error{
	"cainjector":      cainjector,
	"controller":      controllers,
	"startupapicheck": startupapicheck,
	"webhook":         webhook,
}

func main() {
	name, arguments := os.Args[1], os.Args[2:]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logf.InitLogs()
	defer logf.FlushLogs()
	ctrl.SetLogger(logf.Log)
	ctx = logf.NewContext(ctx, logf.Log, name)
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	if err := programs[name](ctx, flags, arguments); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// parsed reads the flags, with those of the log, and applies the latter.
func parsed(flags *pflag.FlagSet, arguments []string) error {
	logging := logsapi.NewLoggingConfiguration()
	logf.AddFlags(logging, flags)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return logf.ValidateAndApply(logging)
}
