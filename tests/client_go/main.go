// Program client_go uses a Kubernetes API as programs in Go do: through client-go.
//
// It guarantees that two servers which behave alike make it print the same: one line of JSON for each check, in order,
// with what was seen, without what no two servers share (uids, versions, times). Its status is 0 if all went well.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// A check uses one part of client-go, and tells its scene what it saw.
type check struct {
	name string
	run  func(*scene)
}

// outcome is what is printed of a check.
type outcome struct {
	Name   string   `json:"name"`
	OK     bool     `json:"ok"`
	Detail []string `json:"detail"`
}

func checks() []check {
	var all []check
	for _, part := range [][]check{
		typedChecks, workloadChecks, listChecks, watchChecks, dynamicChecks, metadataChecks, scaleChecks,
		discoveryChecks, informerChecks, controllerChecks, electionChecks, eventChecks,
	} {
		all = append(all, part...)
	}
	return all
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file that says where the server is and who we are")
	namespace := flag.String("namespace", "default", "namespace to work in")
	contentType := flag.String("content-type", "", "json: bodies in JSON; otherwise as client-go decides")
	only := flag.String("only", "*/*", "checks to run, as a pattern of names")
	limit := flag.Duration("timeout", time.Minute, "time for all checks together")
	flag.Parse()
	// What client-go logs on its own is of no interest while all goes well, and a check that fails says why.
	klog.SetOutput(os.Stderr)

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	config.QPS = -1
	if *contentType == "json" {
		config.ContentType = "application/json"
	}
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	if !run(ctx, config, *namespace, *only) {
		os.Exit(1)
	}
}

// run runs all chosen checks at once, and prints their outcomes in the order of checks.
func run(ctx context.Context, config *rest.Config, namespace, only string) bool {
	chosen := checks()
	outcomes := make([]*outcome, len(chosen))
	var running sync.WaitGroup
	for number, each := range chosen {
		if fits, err := path.Match(only, each.name); err != nil || !fits {
			continue
		}
		running.Go(func() { outcomes[number] = play(ctx, config, namespace, each) })
	}
	running.Wait()
	good, printer := true, json.NewEncoder(os.Stdout)
	printer.SetEscapeHTML(false)
	for _, each := range outcomes {
		if each != nil {
			good = good && each.OK
			_ = printer.Encode(each)
		}
	}
	return good
}
