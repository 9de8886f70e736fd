package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var electionChecks = []check{{"elections/two-candidates", twoCandidates}}

// candidate is one of those who want to lead.
type candidate struct {
	elector       *leaderelection.LeaderElector
	leading, done atomic.Bool
}

func (s *scene) candidate(identity string) *candidate {
	c := &candidate{}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: s.namespace, Name: s.named("lease")},
		Client:     s.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	c.elector = got(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 8 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { c.leading.Store(true) },
			OnStoppedLeading: func() { c.leading.Store(false) },
		},
	})).made(s, "making an elector")
	return c
}

func twoCandidates(s *scene) {
	leases := s.client.CoordinationV1().Leases(s.namespace)
	holder := func() coordinationv1.LeaseSpec {
		return got(leases.Get(s.ctx, s.named("lease"), toGet)).made(s, "getting the lease").Spec
	}
	kim, lee := s.candidate("kim"), s.candidate("lee")
	var running sync.WaitGroup
	run := func(c *candidate) context.CancelFunc {
		ctx, cancel := context.WithCancel(s.ctx)
		running.Go(func() {
			c.elector.Run(ctx)
			c.done.Store(true)
		})
		return cancel
	}
	stopKim := run(kim)
	defer stopKim()
	s.await("kim leads", kim.leading.Load)
	s.show("kim leads", holder())
	stopLee := run(lee)
	defer stopLee()
	s.await("lee knows who leads", func() bool { return lee.elector.GetLeader() == "kim" })
	renewed := holder().RenewTime
	s.await("kim renews", func() bool { return holder().RenewTime.After(renewed.Time) })
	s.say("lee leads: %t", lee.leading.Load())
	stopKim()
	s.await("lee takes over", lee.leading.Load)
	s.say("kim leads: %t", kim.leading.Load() && !kim.done.Load())
	s.show("lee leads", holder())
	stopLee()
	s.await("lee lets go", lee.done.Load)
	s.show("no leader", holder())
	running.Wait()
}
