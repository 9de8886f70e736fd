// Nothing but the converge benchmark's writes, with Go's HTTP client: what the engine allows a Go program.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
)

const workers = 16

var client *http.Client

func send(method, path, mediaType string, body []byte) []byte {
	request, err := http.NewRequest(method, os.Getenv("BENCH_SERVER")+path, bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("BENCH_TOKEN"))
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	response, err := client.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		log.Fatal(method, " ", path, ": ", response.Status, " ", err, " ", string(answer))
	}
	return answer
}

type site struct {
	Metadata struct {
		Name, Namespace, UID string
		Generation           int64
	}
	Spec struct {
		Image, Message string
		Replicas       int64
	}
}

func write(s site) {
	m := s.Metadata
	page, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": m.Name, "ownerReferences": []any{map[string]any{
			"apiVersion": "bench.example.com/v1", "kind": "Site", "name": m.Name, "uid": m.UID,
			"controller": true, "blockOwnerDeletion": true,
		}}},
		"data": map[string]string{
			"image": s.Spec.Image, "replicas": strconv.FormatInt(s.Spec.Replicas, 10),
			"index.html": "<h1>" + s.Spec.Message + "</h1>",
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"readyReplicas":%d}}`, m.Generation, s.Spec.Replicas)
	send("PATCH", "/api/v1/namespaces/"+m.Namespace+"/configmaps/"+m.Name+"?fieldManager=sites&force=true",
		"application/apply-patch+yaml", page)
	send("PATCH", "/apis/bench.example.com/v1/namespaces/"+m.Namespace+"/sites/"+m.Name+"/status",
		"application/merge-patch+json", []byte(status))
}

func main() {
	authority, err := os.ReadFile(os.Getenv("BENCH_CA"))
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: workers}}

	var list struct{ Items []site }
	if err := json.Unmarshal(send("GET", "/apis/bench.example.com/v1/sites?resourceVersion=0", "", nil), &list); err != nil {
		log.Fatal(err)
	}
	sites := make(chan site)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for s := range sites {
				write(s)
			}
		})
	}
	for _, s := range list.Items {
		sites <- s
	}
	close(sites)
	group.Wait()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	<-told
}
