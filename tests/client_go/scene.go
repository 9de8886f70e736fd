package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// scene is what one check works with: clients of its own, a prefix for the names of its objects, and what it saw.
type scene struct {
	ctx       context.Context
	config    *rest.Config
	client    *kubernetes.Clientset
	namespace string
	prefix    string
	traffic   *traffic

	lock   sync.Mutex
	detail []string
}

// traffic counts requests by what they ask for.
type traffic struct {
	lists, watches, initialEvents atomic.Int32
	inner                         http.RoundTripper
}

func (t *traffic) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	switch {
	case request.Method != http.MethodGet:
	case query.Get("sendInitialEvents") == "true":
		t.initialEvents.Add(1)
	case query.Has("watch"):
		t.watches.Add(1)
	default:
		t.lists.Add(1)
	}
	return t.inner.RoundTrip(request)
}

// failure ends a check.
type failure struct{ reason string }

func play(ctx context.Context, config *rest.Config, namespace string, each check) (result *outcome) {
	counting := &traffic{}
	own := rest.CopyConfig(config)
	own.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		counting.inner = inner
		return counting
	})
	s := &scene{ctx: ctx, config: own, namespace: namespace, traffic: counting, detail: []string{}}
	s.prefix = strings.NewReplacer("/", "-").Replace(each.name)
	result = &outcome{Name: each.name, OK: true}
	defer func() {
		if raised := recover(); raised != nil {
			ended, ok := raised.(failure)
			if !ok {
				panic(raised)
			}
			s.say("FAILED: %s", ended.reason)
			result.OK = false
		}
		s.lock.Lock()
		defer s.lock.Unlock()
		result.Detail = slices.Clone(s.detail)
	}()
	client, err := kubernetes.NewForConfig(own)
	s.must(err, "making a client")
	s.client = client
	each.run(s)
	return result
}

// Text that differs between any two servers, or any two runs.
var (
	uids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	moments = regexp.MustCompile(`\.[0-9a-f]{15,16}\b`)
)

func masked(text string) string {
	text = uids.ReplaceAllString(text, "UID")
	return moments.ReplaceAllString(text, ".MOMENT")
}

// say keeps a line of what was seen.
func (s *scene) say(format string, values ...any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.detail = append(s.detail, masked(fmt.Sprintf(format, values...)))
}

// show keeps an object, as far as servers share it.
func (s *scene) show(what string, object any) {
	data, err := json.Marshal(object)
	s.must(err, what)
	var tree any
	s.must(json.Unmarshal(data, &tree), what)
	clean(tree)
	text, err := json.Marshal(tree)
	s.must(err, what)
	s.say("%s: %s", what, text)
}

// clean removes and hides in a tree what no two servers share.
func clean(tree any) {
	switch node := tree.(type) {
	case map[string]any:
		for _, gone := range []string{"uid", "resourceVersion", "managedFields"} {
			if _, isText := node[gone].(string); isText || gone == "managedFields" {
				delete(node, gone)
			}
		}
		for name, value := range node {
			text, isText := value.(string)
			if _, err := time.Parse(time.RFC3339Nano, text); isText && err == nil && !strings.HasPrefix(text, "2001-") {
				node[name] = "TIME"
			}
			clean(value)
		}
	case []any:
		for _, each := range node {
			clean(each)
		}
	}
}

// must ends the check if there is an error.
func (s *scene) must(err error, what string) {
	if err != nil {
		panic(failure{fmt.Sprintf("%s: %v", what, err)})
	}
}

// result is what a call gave: `got(call(...)).made(s, "doing it")`.
type result[T any] struct {
	object T
	err    error
}

func got[T any](object T, err error) result[T] { return result[T]{object, err} }

// made is what was given; it ends the check if that is an error.
func (r result[T]) made(s *scene, what string) T {
	s.must(r.err, what)
	return r.object
}

// shown is made for an object, which it keeps.
func (r result[T]) shown(s *scene, what string) T {
	s.must(r.err, what)
	s.show(what, r.object)
	return r.object
}

// Kinds of patches.
const (
	merge      = types.MergePatchType
	strategic  = types.StrategicMergePatchType
	operations = types.JSONPatchType
)

// Verbs without options.
var (
	toCreate metav1.CreateOptions
	toGet    metav1.GetOptions
	toUpdate metav1.UpdateOptions
	toPatch  metav1.PatchOptions
	toDelete metav1.DeleteOptions
)

var recognizers = []struct {
	name       string
	recognizes func(error) bool
}{
	{"AlreadyExists", apierrors.IsAlreadyExists},
	{"BadRequest", apierrors.IsBadRequest},
	{"Conflict", apierrors.IsConflict},
	{"Forbidden", apierrors.IsForbidden},
	{"Gone", apierrors.IsGone},
	{"Invalid", apierrors.IsInvalid},
	{"MethodNotSupported", apierrors.IsMethodNotSupported},
	{"NotFound", apierrors.IsNotFound},
	{"ResourceExpired", apierrors.IsResourceExpired},
	{"Timeout", apierrors.IsTimeout},
	{"TooManyRequests", apierrors.IsTooManyRequests},
	{"UnsupportedMediaType", apierrors.IsUnsupportedMediaType},
}

// refused keeps an error of the server: what client-go recognizes it as, and all that it says.
func (s *scene) refused(what string, err error) {
	said := s.recognized(what, err)
	said.ListMeta = metav1.ListMeta{}
	s.show(what, said)
}

// recognized keeps what client-go recognizes an error of the server as, but not its words.
func (s *scene) recognized(what string, err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		panic(failure{fmt.Sprintf("%s: not refused by the server, but: %v", what, err)})
	}
	var known []string
	for _, each := range recognizers {
		if each.recognizes(err) {
			known = append(known, each.name)
		}
	}
	s.say("%s: known as %v", what, known)
	return status.Status()
}

// await waits until something is so, and ends the check if it takes too long.
func (s *scene) await(what string, so func() bool) {
	deadline := time.Now().Add(20 * time.Second)
	for !so() {
		if s.ctx.Err() != nil || time.Now().After(deadline) {
			panic(failure{"timed out: " + what})
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// named is the name of an object of this check.
func (s *scene) named(name string) string { return s.prefix + "-" + name }

// labels are what the objects of this check carry.
func (s *scene) labels() map[string]string { return map[string]string{"check": s.prefix} }

// selector chooses the objects of this check.
func (s *scene) selector() string { return "check=" + s.prefix }

// meta is the metadata of an object of this check.
func (s *scene) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: s.named(name), Namespace: s.namespace, Labels: s.labels()}
}

// mine lists the objects of this check.
func (s *scene) mine() metav1.ListOptions { return metav1.ListOptions{LabelSelector: s.selector()} }
