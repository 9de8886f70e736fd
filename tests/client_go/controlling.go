package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
)

var controllerChecks = []check{
	{"controllers/workqueue", controlled},
	{"controllers/retry-on-conflict", increments},
}

const (
	objects   = 100
	annotated = "observed-number"
)

// controller writes what each ConfigMap holds into an annotation of it.
type controller struct {
	client kubernetes.Interface
	lister corelisters.ConfigMapLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]

	writes, conflicts, failures atomic.Int32
	// failed holds keys that have failed once, as every tenth does.
	failed sync.Map
}

var errOnce = errors.New("fails once")

func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	object, err := c.lister.ConfigMaps(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if object.Annotations[annotated] == object.Data["number"] {
		return nil
	}
	if _, before := c.failed.LoadOrStore(key, true); !before && key.Name[len(key.Name)-1] == '0' {
		return errOnce
	}
	changed := object.DeepCopy()
	changed.Annotations = map[string]string{annotated: object.Data["number"]}
	_, err = c.client.CoreV1().ConfigMaps(key.Namespace).Update(ctx, changed, toUpdate)
	if err == nil {
		c.writes.Add(1)
	}
	return err
}

func (c *controller) work(ctx context.Context) {
	for {
		key, stopped := c.queue.Get()
		if stopped {
			return
		}
		switch err := c.reconcile(ctx, key); {
		case err == nil:
			c.queue.Forget(key)
		case apierrors.IsConflict(err):
			c.conflicts.Add(1)
			c.queue.AddRateLimited(key)
		default:
			c.failures.Add(1)
			c.queue.AddRateLimited(key)
		}
		c.queue.Done(key)
	}
}

func controlled(s *scene) {
	s.many(objects)
	factory := s.informers(s.client, 0, s.tweak)
	maps := factory.Core().V1().ConfigMaps()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](5*time.Millisecond, time.Second)
	c := &controller{client: s.client, lister: maps.Lister(), queue: workqueue.NewTypedRateLimitingQueue(limiter)}
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			c.queue.Add(key)
		}
	}
	_, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
	})
	s.must(err, "adding a handler")
	ctx, cancel := context.WithCancel(s.ctx)
	var workers sync.WaitGroup
	defer func() {
		c.queue.ShutDown()
		workers.Wait()
		cancel()
		factory.Shutdown()
	}()
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	for range 4 {
		workers.Go(func() { c.work(ctx) })
	}
	// a write shows in a list before the writer has its answer
	s.await("all objects", func() bool { return s.converged() == objects && c.writes.Load() >= objects })
	s.say("converged: %d, writes: %d, failures: %d", s.converged(), c.writes.Load(), c.failures.Load())
	for number := range 20 {
		patch := fmt.Sprintf(`{"data":{"number":"%d"}}`, 1000+number)
		_, err := s.client.CoreV1().ConfigMaps(s.namespace).Patch(
			s.ctx, s.named(fmt.Sprintf("%03d", number)), merge, []byte(patch), toPatch,
		)
		s.must(err, "patching")
	}
	s.await("what was changed", func() bool { return s.converged() == objects && c.writes.Load() >= objects+20 })
	s.say("converged again: %d, writes: %d", s.converged(), c.writes.Load())
}

// converged counts the objects whose annotation tells what they hold.
func (s *scene) converged() int {
	found, err := s.client.CoreV1().ConfigMaps(s.namespace).List(s.ctx, s.mine())
	s.must(err, "listing")
	count := 0
	for _, each := range found.Items {
		if each.Annotations[annotated] == each.Data["number"] {
			count++
		}
	}
	return count
}

// increments lets many writers count in one object.
func increments(s *scene) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	_, err := maps.Create(
		s.ctx, &corev1.ConfigMap{ObjectMeta: s.meta("counter"), Data: map[string]string{"count": "0"}}, toCreate,
	)
	s.must(err, "creating")
	patient := wait.Backoff{Steps: 500, Duration: time.Millisecond, Factor: 1, Jitter: 4}
	var writing sync.WaitGroup
	errs := make([]error, 8)
	for writer := range errs {
		writing.Go(func() {
			for range 5 {
				errs[writer] = retry.RetryOnConflict(patient, func() error {
					object, err := maps.Get(s.ctx, s.named("counter"), toGet)
					if err != nil {
						return err
					}
					var count int
					if _, err := fmt.Sscan(object.Data["count"], &count); err != nil {
						return err
					}
					object.Data["count"] = fmt.Sprint(count + 1)
					_, err = maps.Update(s.ctx, object, toUpdate)
					return err
				})
				if errs[writer] != nil {
					return
				}
			}
		})
	}
	writing.Wait()
	for _, err := range errs {
		s.must(err, "counting")
	}
	got(maps.Get(s.ctx, s.named("counter"), toGet)).shown(s, "counted by 8 writers, 5 times each")
}
