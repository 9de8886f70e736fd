// An API server of tilt-apiserver, the library of Microsoft's Developer Control Plane, with kinds of that control plane.
//
//	server PORT TOKEN     serves on 127.0.0.1; objects are in memory
//
// SIGUSR1 frees what is garbage, so that memory can be measured.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"

	tiltopenapi "github.com/tilt-dev/tilt-apiserver/pkg/generated/openapi"
	"github.com/tilt-dev/tilt-apiserver/pkg/server/builder"
	"github.com/tilt-dev/tilt-apiserver/pkg/server/options"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/common"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	check(err)
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGUSR1)
		for range signals {
			debug.FreeOSMemory()
		}
	}()
	server, err := builder.NewServerBuilder().
		WithResourceMemoryStorage(&Executable{}, "data").
		WithResourceMemoryStorage(&Service{}, "data").
		WithOpenAPIDefinitions("tilt", "0.1.0", definitions).
		WithBearerToken(os.Args[2]).
		WithBindPort(port).
		WithCertKey(options.GeneratableKeyCert{}).
		ToServerOptions()
	check(err)
	stopped, err := server.RunTiltServer(context.Background())
	check(err)
	<-stopped
}

func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	found := tiltopenapi.GetOpenAPIDefinitions(ref)
	for _, each := range []any{Executable{}, ExecutableList{}, Service{}, ServiceList{}} {
		define(found, ref, each)
	}
	return found
}

func check(err error) {
	if err != nil {
		klog.Fatal(err)
	}
}
