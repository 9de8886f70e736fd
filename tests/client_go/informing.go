package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

var informerChecks = []check{
	{"informers/watch-list", func(s *scene) { informTyped(s, s.client) }},
	{"informers/list-and-watch", func(s *scene) { informTyped(s, withoutWatchList{s.client}) }},
	{"informers/dynamic", informDynamic},
	{"informers/metadata", informMetadata},
	{"informers/resync", resync},
	{"informers/server-timeout", serverTimeout},
}

// withoutWatchList is a client whose informers list, then watch.
type withoutWatchList struct{ kubernetes.Interface }

func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// journal is what an informer told, in order.
type journal struct {
	lock  sync.Mutex
	lines []string
}

func (j *journal) add(format string, values ...any) {
	j.lock.Lock()
	defer j.lock.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, values...))
}

func (j *journal) read() []string {
	j.lock.Lock()
	defer j.lock.Unlock()
	return slices.Clone(j.lines)
}

// follow keeps what an informer tells.
func (s *scene) follow(informer cache.SharedIndexInformer) *journal {
	kept := &journal{}
	told := func(object any) (string, string, string) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		found, err := meta.Accessor(object)
		if err != nil {
			return "?", "", ""
		}
		return strings.TrimPrefix(
			found.GetName(), s.prefix+"-",
		), found.GetAnnotations()["step"], found.GetResourceVersion()
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			name, step, _ := told(object)
			kept.add("add %s %s initial=%t", name, step, initial)
		},
		UpdateFunc: func(old, object any) {
			name, before, version := told(old)
			_, after, next := told(object)
			if version == next {
				kept.add("resync %s %s", name, after)
			} else {
				kept.add("update %s %s->%s", name, before, after)
			}
		},
		DeleteFunc: func(object any) {
			name, step, _ := told(object)
			kept.add("delete %s %s", name, step)
		},
	})
	s.must(err, "adding a handler")
	return kept
}

// story changes objects while an informer runs, and keeps what it told.
func (s *scene) story(
	informer cache.SharedIndexInformer,
	start func(),
	resource schema.GroupVersionResource,
	object func(string) *unstructured.Unstructured,
) {
	all := s.dynamic().Resource(resource).Namespace(s.namespace)
	create := func(name string) {
		_, err := all.Create(s.ctx, object(name), toCreate)
		s.must(err, "creating")
	}
	step := func(name string, number int) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"step":"%d"}}}`, number)
		_, err := all.Patch(s.ctx, s.named(name), merge, []byte(patch), toPatch)
		s.must(err, "patching")
	}
	for _, name := range []string{"a", "b", "c"} {
		create(name)
	}
	kept := s.follow(informer)
	start()
	if !cache.WaitForCacheSync(s.ctx.Done(), informer.HasSynced) {
		panic(failure{"the informer does not sync"})
	}
	s.await("the first objects", func() bool { return len(kept.read()) >= 3 })
	first := kept.read()
	slices.Sort(first)
	s.say("first: %s", strings.Join(first, ", "))
	create("d")
	for number := range 3 {
		step("a", number)
	}
	s.must(all.Delete(s.ctx, s.named("b"), toDelete), "deleting")
	create("b")
	step("d", 9)
	// leaves the selection, without being deleted
	_, err := all.Patch(s.ctx, s.named("c"), merge, []byte(`{"metadata":{"labels":{"check":null}}}`), toPatch)
	s.must(err, "patching")
	step("d", 10)
	s.await("all that happened", func() bool { return len(kept.read()) >= 3+9 })
	s.say("then: %s", strings.Join(kept.read()[3:], ", "))
	s.say("held: %d", len(informer.GetStore().List()))
}

// informers makes informers of this check's namespace.
func (s *scene) informers(
	client kubernetes.Interface, resync time.Duration, tweak func(*metav1.ListOptions),
) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(
		client, resync, informers.WithNamespace(s.namespace), informers.WithTweakListOptions(tweak),
	)
}

func (s *scene) tweak(options *metav1.ListOptions) { options.LabelSelector = s.selector() }

func (s *scene) sayTraffic() {
	s.say(
		"lists: %d, watches with initial events: %d, without: %d",
		s.traffic.lists.Load(),
		s.traffic.initialEvents.Load(),
		s.traffic.watches.Load(),
	)
}

func informTyped(s *scene, client kubernetes.Interface) {
	factory := s.informers(client, 0, s.tweak)
	maps := factory.Core().V1().ConfigMaps()
	ctx, cancel := context.WithCancel(s.ctx)
	defer func() {
		cancel()
		factory.Shutdown()
	}()
	s.story(maps.Informer(), func() { factory.StartWithContext(ctx) }, configMapsResource, s.configMap)
	found, err := maps.Lister().ConfigMaps(s.namespace).List(labels.Everything())
	s.must(err, "listing")
	s.say("listed: %d", len(found))
	a, err := maps.Lister().ConfigMaps(s.namespace).Get(s.named("a"))
	s.must(err, "getting")
	s.show("held", a)
	s.sayTraffic()
}

func informDynamic(s *scene) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.dynamic(), 0, s.namespace, s.tweak)
	ctx, cancel := context.WithCancel(s.ctx)
	defer func() {
		cancel()
		factory.Shutdown()
	}()
	informer := factory.ForResource(sitesResource).Informer()
	s.story(informer, func() { factory.Start(ctx.Done()) }, sitesResource, s.site)
	s.sayTraffic()
}

func informMetadata(s *scene) {
	client := got(metadata.NewForConfig(s.config)).made(s, "making a metadata client")
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, s.namespace, s.tweak)
	ctx, cancel := context.WithCancel(s.ctx)
	defer func() {
		cancel()
		factory.Shutdown()
	}()
	informer := factory.ForResource(configMapsResource).Informer()
	s.story(informer, func() { factory.Start(ctx.Done()) }, configMapsResource, s.configMap)
	s.sayTraffic()
}

func resync(s *scene) {
	s.many(3)
	factory := s.informers(s.client, time.Second, s.tweak)
	ctx, cancel := context.WithCancel(s.ctx)
	defer func() {
		cancel()
		factory.Shutdown()
	}()
	kept := s.follow(factory.Core().V1().ConfigMaps().Informer())
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	s.await("a resync", func() bool { return len(kept.read()) >= 6 })
	again := kept.read()[3:6]
	slices.Sort(again)
	s.say("%s", strings.Join(again, ", "))
	s.sayTraffic()
}

// serverTimeout runs an informer whose watches the server ends again and again.
func serverTimeout(s *scene) {
	s.many(1)
	tweak := func(options *metav1.ListOptions) {
		s.tweak(options)
		options.TimeoutSeconds = ptr.To[int64](2)
	}
	factory := s.informers(s.client, 0, tweak)
	ctx, cancel := context.WithCancel(s.ctx)
	defer func() {
		cancel()
		factory.Shutdown()
	}()
	kept := s.follow(factory.Core().V1().ConfigMaps().Informer())
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	s.await("a watch after the first", func() bool { return s.traffic.watches.Load() >= 1 })
	_, err := s.client.CoreV1().ConfigMaps(s.namespace).Patch(
		s.ctx, s.named("000"), merge, []byte(`{"metadata":{"annotations":{"step":"1"}}}`), toPatch,
	)
	s.must(err, "patching")
	s.await("what happened", func() bool { return len(kept.read()) >= 2 })
	s.say("%s", strings.Join(kept.read(), ", "))
	s.say("lists: %d", s.traffic.lists.Load())
}
