// The specs of the official Kubernetes e2e suite that need no cloud and no storage, as one program.
//
// It adds two flags to those of the suite: -specs names a file with the specs to run, one full name per line, and -events
// a file to which the program appends a JSON line when a spec begins and when it ends. As "webhook" and as
// "crd-conversion-webhook" it is agnhost, the image whose containers answer the suite's webhooks.
package kubernetes_e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/testinit"
	"k8s.io/klog/v2"
	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e/apps"
	_ "k8s.io/kubernetes/test/e2e/auth"
	_ "k8s.io/kubernetes/test/e2e/common/node"
	_ "k8s.io/kubernetes/test/e2e/feature"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	_ "k8s.io/kubernetes/test/e2e/kubectl"
	_ "k8s.io/kubernetes/test/e2e/network"
	_ "k8s.io/kubernetes/test/e2e/node"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	"k8s.io/kubernetes/test/fixtures"
	"k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook/converter"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

const title = "Kubernetes e2e suite"

// event is one line of the file of events.
type event struct {
	Event   string  `json:"event"`
	Spec    string  `json:"spec"`
	State   string  `json:"state,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Message string  `json:"message,omitempty"`
}

var (
	specs  = flag.String("specs", "", "file with the full names of the specs to run, one per line")
	events = flag.String("events", "", "file to which a JSON line is appended when a spec begins and when it ends")

	output *json.Encoder
)

// report writes the events of all specs. Previewing the specs drops earlier nodes outside of containers, so this runs
// after framework.AfterReadingAllFlags.
func report() {
	// Ginkgo also reports specs that the selection leaves out.
	begun := map[string]bool{}
	ginkgo.ReportBeforeEach(func(report ginkgo.SpecReport) {
		if !report.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
			begun[report.FullText()] = true
			write(event{Event: "begin", Spec: report.FullText()})
		}
	})
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
		if begun[report.FullText()] {
			write(event{
				Event:   "end",
				Spec:    report.FullText(),
				State:   report.State.String(),
				Seconds: report.RunTime.Seconds(),
				Message: report.Failure.Message,
			})
		}
	})
}

func write(line event) {
	if err := output.Encode(line); err != nil {
		log.Fatal(err)
	}
}

// selection returns one expression for each name in a file; it matches that spec and no other.
func selection(file string) []string {
	content, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	var expressions []string
	for _, name := range strings.Split(string(content), "\n") {
		if name != "" {
			expressions = append(expressions, "^"+regexp.QuoteMeta(title+" "+name)+"$")
		}
	}
	return expressions
}

// agnhost runs one of its servers, and does not return.
func agnhost() {
	command := &cobra.Command{Use: "agnhost"}
	command.AddCommand(webhook.CmdWebhook, conversion())
	os.Exit(cli.Run(command))
}

// conversion is the command of agnhost with this name, without the client that agnhost's own creates in a Pod.
func conversion() *cobra.Command {
	var port int
	var certificate, key string
	command := &cobra.Command{Use: "crd-conversion-webhook", RunE: func(*cobra.Command, []string) error {
		http.HandleFunc("/crdconvert", converter.ServeExampleConvert)
		return http.ListenAndServeTLS(fmt.Sprintf(":%d", port), certificate, key, nil)
	}}
	command.Flags().IntVar(&port, "port", 443, "port to listen on")
	command.Flags().StringVar(&certificate, "tls-cert-file", "", "file with the certificate")
	command.Flags().StringVar(&key, "tls-private-key-file", "", "file with the key of the certificate")
	return command
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasSuffix(os.Args[1], "webhook") {
		agnhost()
	}
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	testfiles.AddFileSource(fixtures.GetTestFixturesFS())
	framework.TestContext.IPFamily = "ipv4"
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestE2E(t *testing.T) {
	logs.InitLogs()
	defer logs.FlushLogs()
	klog.EnableContextualLogging(true)
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	if *specs != "" {
		suite.FocusStrings, suite.SkipStrings = selection(*specs), nil
	}
	if *events != "" {
		file, err := os.OpenFile(*events, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		output = json.NewEncoder(file)
		report()
	}
	ginkgo.RunSpecs(t, title, suite, reporter)
}
