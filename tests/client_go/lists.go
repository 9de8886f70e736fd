package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
)

var listChecks = []check{
	{"lists/pages", pages},
	{"lists/versions", listVersions},
	{"lists/delete-collection", deleteCollection},
}

var watchChecks = []check{
	{"watches/events", watchEvents},
	{"watches/initial-events", initialEvents},
	{"watches/expired", expired},
	{"watches/until", until},
}

// many makes ConfigMaps, twenty at once, with labels that tell odd from even ones.
func (s *scene) many(count int) {
	var creating sync.WaitGroup
	errors := make([]error, count)
	places := make(chan struct{}, 20)
	for number := range count {
		places <- struct{}{}
		creating.Go(func() {
			defer func() { <-places }()
			object := &corev1.ConfigMap{
				ObjectMeta: s.meta(fmt.Sprintf("%03d", number)), Data: map[string]string{"number": fmt.Sprint(number)},
			}
			object.Labels["parity"] = [2]string{"even", "odd"}[number%2]
			_, errors[number] = s.client.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, object, toCreate)
		})
	}
	creating.Wait()
	for _, err := range errors {
		s.must(err, "creating many")
	}
}

func (s *scene) nameOf(object runtime.Object) string {
	found, err := meta.Accessor(object)
	s.must(err, "reading metadata")
	return strings.TrimPrefix(found.GetName(), s.prefix+"-")
}

func pages(s *scene) {
	// objects of other programs are not counted
	s.namespace += "-pages"
	_, err := s.client.CoreV1().Namespaces().Create(
		s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, toCreate,
	)
	s.must(err, "creating a namespace")
	s.many(25)
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	turn := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := maps.List(ctx, options)
		if err == nil {
			remaining := "unknown"
			if page.RemainingItemCount != nil {
				remaining = fmt.Sprint(*page.RemainingItemCount)
			}
			s.say("page of %d, goes on: %t, remaining: %s", len(page.Items), page.Continue != "", remaining)
		}
		return page, err
	}
	paged := pager.New(turn)
	paged.PageSize = 10
	paged.PageBufferSize = 0
	for _, options := range []metav1.ListOptions{
		{},
		{LabelSelector: s.selector()},
		{LabelSelector: s.selector() + ",parity=odd"},
		{LabelSelector: s.selector(), FieldSelector: "metadata.name!=" + s.named("004")},
		{LabelSelector: s.selector() + ",parity notin (odd, even)"},
	} {
		var names []string
		s.must(paged.EachListItem(s.ctx, options, func(object runtime.Object) error {
			names = append(names, s.nameOf(object))
			return nil
		}), "paging")
		s.say("%s: %s", options.LabelSelector, strings.Join(names, " "))
	}
	whole, paginated, err := paged.List(s.ctx, s.mine())
	s.must(err, "listing all")
	s.say("all: %d, in pages: %t", meta.LenList(whole), paginated)
	first := got(maps.List(s.ctx, metav1.ListOptions{LabelSelector: s.selector(), Limit: 2})).made(s, "listing")
	s.must(maps.Delete(s.ctx, s.named("002"), toDelete), "deleting")
	next := got(maps.List(
		s.ctx, metav1.ListOptions{LabelSelector: s.selector(), Limit: 2, Continue: first.Continue},
	)).made(s, "listing")
	s.say(
		"a page as of the first: %s, of the same version: %t",
		s.nameOf(&next.Items[0]),
		next.ResourceVersion == first.ResourceVersion,
	)
	_, err = maps.List(s.ctx, metav1.ListOptions{Limit: 2, Continue: "nonsense"})
	s.refused("a token that is none", err)
	_, err = maps.List(
		s.ctx, metav1.ListOptions{Limit: 2, Continue: first.Continue, ResourceVersion: first.ResourceVersion},
	)
	s.refused("a token and a version", err)
	s.must(s.client.CoreV1().Namespaces().Delete(s.ctx, s.namespace, toDelete), "deleting the namespace")
}

func listVersions(s *scene) {
	s.many(3)
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	now := got(maps.List(s.ctx, s.mine())).made(s, "listing")
	s.must(maps.Delete(s.ctx, s.named("000"), toDelete), "deleting")
	for _, options := range []metav1.ListOptions{
		{ResourceVersion: "0"},
		{ResourceVersion: now.ResourceVersion},
		{ResourceVersion: now.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
		{ResourceVersion: now.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact},
	} {
		options.LabelSelector = s.selector()
		found := got(maps.List(s.ctx, options)).made(s, "listing")
		exact := options.ResourceVersionMatch == metav1.ResourceVersionMatchExact
		if exact {
			s.say("exactly: %d, of that version: %t", len(found.Items), found.ResourceVersion == now.ResourceVersion)
		} else {
			s.say("at least: %t", len(found.Items) >= 2)
		}
	}
	_, err := maps.List(s.ctx, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	s.refused("a match without a version", err)
	_, err = maps.List(s.ctx, metav1.ListOptions{ResourceVersion: "x"})
	s.refused("a version that is none", err)
}

func deleteCollection(s *scene) {
	s.many(12)
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	s.must(maps.DeleteCollection(s.ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, s.mine()), "trying")
	s.must(
		maps.DeleteCollection(s.ctx, toDelete, metav1.ListOptions{LabelSelector: s.selector() + ",parity=odd"}),
		"deleting odd ones",
	)
	left := got(maps.List(s.ctx, s.mine())).made(s, "listing")
	for number := range left.Items {
		s.say("left: %s", s.nameOf(&left.Items[number]))
	}
	s.must(maps.DeleteCollection(s.ctx, toDelete, s.mine()), "deleting all")
	left = got(maps.List(s.ctx, s.mine())).made(s, "listing")
	s.say("left: %d", len(left.Items))
}

// next is the next event of a watch.
func (s *scene) next(watching watch.Interface) watch.Event {
	select {
	case event, open := <-watching.ResultChan():
		if !open {
			panic(failure{"the watch ended"})
		}
		return event
	case <-s.ctx.Done():
		panic(failure{"no event"})
	}
}

func watchEvents(s *scene) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	now := got(maps.List(s.ctx, s.mine())).made(s, "listing")
	options := metav1.ListOptions{LabelSelector: s.selector() + ",seen=yes", ResourceVersion: now.ResourceVersion}
	watching := got(maps.Watch(s.ctx, options)).made(s, "watching")
	a := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	a.Labels["seen"] = "yes"
	a = got(maps.Create(s.ctx, a, toCreate)).made(s, "creating")
	for _, seen := range []string{"no", "yes"} {
		a.Labels["seen"] = seen
		a = got(maps.Update(s.ctx, a, toUpdate)).made(s, "labeling")
	}
	a.Data = map[string]string{"k": "v"}
	a = got(maps.Update(s.ctx, a, toUpdate)).made(s, "updating")
	s.must(maps.Delete(s.ctx, a.Name, toDelete), "deleting")
	for range 5 {
		event := s.next(watching)
		s.show(string(event.Type), event.Object)
	}
	watching.Stop()
	again := got(maps.Watch(s.ctx, options)).made(s, "watching")
	for range 5 {
		s.say("again: %s", s.next(again).Type)
	}
	again.Stop()
	ending := got(maps.Watch(
		s.ctx, metav1.ListOptions{LabelSelector: "none=such", TimeoutSeconds: ptr.To[int64](1)},
	)).made(s, "watching")
	_, open := <-ending.ResultChan()
	s.say("ends by itself: %t", !open)
}

func initialEvents(s *scene) {
	s.many(3)
	options := metav1.ListOptions{
		LabelSelector: s.selector(), AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	watching := got(s.client.CoreV1().ConfigMaps(s.namespace).Watch(s.ctx, options)).made(s, "watching")
	defer watching.Stop()
	for range 4 {
		event := s.next(watching)
		if event.Type == watch.Bookmark {
			found := got(meta.Accessor(event.Object)).made(s, "reading a bookmark")
			s.say("bookmark of %T: %v", event.Object, found.GetAnnotations())
		} else {
			s.say("%s %s", event.Type, s.nameOf(event.Object))
		}
	}
	options.ResourceVersionMatch = ""
	_, err := s.client.CoreV1().ConfigMaps(s.namespace).Watch(s.ctx, options)
	s.refused("initial events without a match", err)
}

// expired asks for what the server has forgotten. Of events, it keeps no more than its store does.
func expired(s *scene) {
	events := s.client.CoreV1().Events(s.namespace)
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":1,"start":"a"}`))
	_, err := events.List(s.ctx, metav1.ListOptions{Limit: 2, Continue: token})
	s.refused("listed on from long ago", err)
	watching, err := events.Watch(s.ctx, metav1.ListOptions{ResourceVersion: "1"})
	if err == nil {
		event := s.next(watching)
		s.say("told by an event: %s", event.Type)
		err = apierrors.FromObject(event.Object)
		watching.Stop()
	}
	s.refused("watched from long ago", err)
}

func until(s *scene) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	a := got(maps.Create(s.ctx, &corev1.ConfigMap{ObjectMeta: s.meta("a")}, toCreate)).made(s, "creating")
	source := cache.NewListWatchFromClient(
		s.client.CoreV1().RESTClient(), "configmaps", s.namespace, fields.OneTermEqualSelector("metadata.name", a.Name),
	)
	version := a.ResourceVersion
	for number := range 3 {
		a.Data = map[string]string{"number": fmt.Sprint(number)}
		a = got(maps.Update(s.ctx, a, toUpdate)).made(s, "updating")
	}
	reached := func(event watch.Event) (bool, error) {
		object, ok := event.Object.(*corev1.ConfigMap)
		return ok && object.Data["number"] == "2", nil
	}
	event := got(watchtools.Until(s.ctx, version, source, reached)).made(s, "waiting")
	s.show("until", event.Object)
	event = got(watchtools.UntilWithSync(s.ctx, source, &corev1.ConfigMap{}, nil, reached)).made(s, "waiting")
	s.say("until, with a cache: %s", event.Type)
}
