package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

var eventChecks = []check{
	{"events/recorder", recorder},
	{"events/older-recorder", olderRecorder},
}

func (s *scene) regarded() *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	regarded := got(s.client.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, object, toCreate)).made(s, "creating")
	// what is read of a server by a typed client may lack them, and a recorder needs them
	regarded.APIVersion, regarded.Kind = "v1", "ConfigMap"
	return regarded
}

func recorder(s *scene) {
	regarded := s.regarded()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: s.client.EventsV1()})
	defer broadcaster.Shutdown()
	s.must(broadcaster.StartRecordingToSinkWithContext(ctx), "starting")
	recording := broadcaster.NewRecorder(scheme.Scheme, "steersman.dev/check")
	all := s.client.EventsV1().Events(s.namespace)
	about := metav1.ListOptions{FieldSelector: "regarding.name=" + regarded.Name}
	list := func() []eventsv1.Event {
		return got(all.List(s.ctx, about)).made(s, "listing").Items
	}
	recording.Eventf(regarded, nil, corev1.EventTypeNormal, "Sailed", "Sail", "left port %d", 7)
	s.await("an event", func() bool { return len(list()) == 1 })
	s.showEvent("recorded", list()[0])
	recording.Eventf(regarded, nil, corev1.EventTypeNormal, "Sailed", "Sail", "left port %d", 7)
	s.await("a series", func() bool { found := list(); return len(found) == 1 && found[0].Series != nil })
	s.showEvent("again", list()[0])
	recording.Eventf(regarded, regarded, corev1.EventTypeWarning, "Sank", "Sink", "deep")
	s.await("another event", func() bool { return len(list()) == 2 })
	warnings := got(all.List(
		s.ctx, metav1.ListOptions{FieldSelector: about.FieldSelector + ",type=Warning"},
	)).made(s, "listing")
	for _, each := range warnings.Items {
		s.showEvent("a warning", each)
	}
	older := got(s.client.CoreV1().Events(s.namespace).List(
		s.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + regarded.Name + ",reason=Sailed"},
	)).made(s, "listing")
	for _, each := range older.Items {
		each.ReportingInstance = ""
		s.show("in the older form", each)
	}
	now := metav1.NowMicro()
	_, err := all.Create(s.ctx, &eventsv1.Event{ObjectMeta: s.meta("bad"), EventTime: now, Type: "Odd"}, toCreate)
	s.refused("invalid", err)
}

// showEvent is show without the name of the host.
func (s *scene) showEvent(what string, event eventsv1.Event) {
	event.ReportingInstance = ""
	s.show(what, event)
}

func olderRecorder(s *scene) {
	regarded := s.regarded()
	broadcaster := record.NewBroadcaster(record.WithContext(s.ctx), record.WithSleepDuration(100*time.Millisecond))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.client.CoreV1().Events(s.namespace)})
	recording := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "check"})
	list := func() []corev1.Event {
		found, err := s.client.CoreV1().Events(s.namespace).SearchWithContext(s.ctx, scheme.Scheme, regarded)
		s.must(err, "searching")
		return found.Items
	}
	for count := range int32(3) {
		recording.Event(regarded, corev1.EventTypeNormal, "Sailed", "left port")
		s.await("an event", func() bool { found := list(); return len(found) == 1 && found[0].Count == count+1 })
	}
	s.show("recorded three times", list()[0])
}
