package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	finalizer  = "fleet.example.com/harbour"
	chartLabel = "fleet.example.com/chart"
	chartField = "spec.chart"
	// logbook is where the finalizer notes what it let go.
	logbook = "logbook"
)

// shipReconciler makes a Deployment, a ConfigMap and a Service of each ship.
type shipReconciler struct {
	client.Client
	recorder events.EventRecorder
}

func (r *shipReconciler) setUp(manager ctrl.Manager) error {
	ctx := context.Background()
	err := manager.GetFieldIndexer().IndexField(ctx, &Ship{}, chartField, func(object client.Object) []string {
		if chart := object.(*Ship).Spec.Chart; chart != "" {
			return []string{chart}
		}
		return nil
	})
	if err != nil {
		return err
	}
	charts := predicate.NewPredicateFuncs(func(object client.Object) bool {
		_, found := object.GetLabels()[chartLabel]
		return found
	})
	return ctrl.NewControllerManagedBy(manager).
		For(&Ship{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.shipsWith), builder.WithPredicates(charts)).
		Complete(r)
}

// shipsWith finds the ships that go by a chart.
func (r *shipReconciler) shipsWith(ctx context.Context, chart client.Object) []reconcile.Request {
	var ships ShipList
	if err := r.List(ctx, &ships, client.InNamespace(chart.GetNamespace()), client.MatchingFields{chartField: chart.GetName()}); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, len(ships.Items))
	for i := range ships.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&ships.Items[i])
	}
	return requests
}

// Reconcile makes what a ship wants come true.
func (r *shipReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var ship Ship
	if err := r.Get(ctx, request.NamespacedName, &ship); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ship.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.letGo(ctx, &ship)
	}
	if controllerutil.AddFinalizer(&ship, finalizer) {
		if err := r.Update(ctx, &ship); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.applyOwn(ctx, &ship); err != nil {
		return ctrl.Result{}, err
	}
	deployment, done, err := r.deploy(ctx, &ship)
	if err != nil {
		return ctrl.Result{}, err
	}
	if done == controllerutil.OperationResultCreated {
		r.recorder.Eventf(&ship, deployment, corev1.EventTypeNormal, "Launched", "Launch", "launched %s", deployment.Name)
	}
	return ctrl.Result{}, r.report(ctx, &ship, deployment)
}

// letGo does what has to be done before a ship goes.
func (r *shipReconciler) letGo(ctx context.Context, ship *Ship) error {
	if !controllerutil.ContainsFinalizer(ship, finalizer) {
		return nil
	}
	err := retry.OnError(retry.DefaultRetry, func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }, func() error {
		book := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ship.Namespace, Name: logbook}}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, book, func() error {
			if book.Data == nil {
				book.Data = map[string]string{}
			}
			book.Data[ship.Name] = "sank as a " + ship.Spec.Class
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	before := ship.DeepCopy()
	controllerutil.RemoveFinalizer(ship, finalizer)
	return client.IgnoreNotFound(r.Patch(ctx, ship, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// applyOwn applies what the ship alone decides.
func (r *shipReconciler) applyOwn(ctx context.Context, ship *Ship) error {
	owner := metav1ac.OwnerReference().WithAPIVersion(groupVersion.String()).WithKind("Ship").
		WithName(ship.Name).WithUID(ship.UID).WithController(true).WithBlockOwnerDeletion(true)
	papers := corev1ac.ConfigMap(ship.Name+"-papers", ship.Namespace).WithOwnerReferences(owner).
		WithData(map[string]string{"class": ship.Spec.Class, "image": ship.Spec.Image})
	if err := r.Apply(ctx, papers, client.FieldOwner("fleet"), client.ForceOwnership); err != nil {
		return err
	}
	service := corev1ac.Service(ship.Name, ship.Namespace).WithOwnerReferences(owner).
		WithSpec(corev1ac.ServiceSpec().WithSelector(selector(ship)).
			WithPorts(corev1ac.ServicePort().WithName("http").WithPort(80)))
	return r.Apply(ctx, service, client.FieldOwner("fleet"), client.ForceOwnership)
}

func selector(ship *Ship) map[string]string { return map[string]string{"ship": ship.Name} }

// deploy creates or updates the Deployment of a ship.
func (r *shipReconciler) deploy(ctx context.Context, ship *Ship) (*appsv1.Deployment, controllerutil.OperationResult, error) {
	course, err := r.course(ctx, ship)
	if err != nil {
		return nil, "", err
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ship.Namespace, Name: ship.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		deployment.Spec.Replicas = ship.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector(ship)}
		template := &deployment.Spec.Template
		template.Labels = selector(ship)
		if template.Annotations == nil {
			template.Annotations = map[string]string{}
		}
		template.Annotations["fleet.example.com/course"] = course
		if len(template.Spec.Containers) == 0 {
			template.Spec.Containers = []corev1.Container{{Name: "main"}}
		}
		template.Spec.Containers[0].Image = ship.Spec.Image
		return controllerutil.SetControllerReference(ship, deployment, r.Scheme())
	})
	return deployment, done, err
}

// course is a digest of the chart of a ship.
func (r *shipReconciler) course(ctx context.Context, ship *Ship) (string, error) {
	if ship.Spec.Chart == "" {
		return "none", nil
	}
	var chart corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: ship.Namespace, Name: ship.Spec.Chart}, &chart)
	if apierrors.IsNotFound(err) {
		return "unknown", nil
	}
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(chart.Data)
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:8]), err
}

// report writes the status of a ship, if it says something new.
func (r *shipReconciler) report(ctx context.Context, ship *Ship, deployment *appsv1.Deployment) error {
	before := ship.DeepCopy()
	ship.Status.ObservedGeneration = ship.Generation
	ship.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	ship.Status.Selector = metav1.FormatLabelSelector(deployment.Spec.Selector)
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", ObservedGeneration: ship.Generation,
		Message: fmt.Sprintf("%d of %d replicas are ready", deployment.Status.ReadyReplicas, *ship.Spec.Replicas),
	}
	if deployment.Status.ReadyReplicas == *ship.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Complete"
	}
	was := meta.IsStatusConditionTrue(before.Status.Conditions, "Ready")
	meta.SetStatusCondition(&ship.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, ship.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, ship, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	if is := ready.Status == metav1.ConditionTrue; is && !was {
		r.recorder.Eventf(ship, nil, corev1.EventTypeNormal, "Ready", "Report", "all replicas are ready")
	}
	return nil
}
