package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var workloadChecks = []check{
	{"workloads/deployments", deployments},
	{"workloads/deployment-scale", deploymentScale},
	{"workloads/pods", pods},
	{"workloads/eviction", eviction},
}

func (s *scene) template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": s.prefix}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:  "web",
			Image: "nginx:1.27",
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
			Env: []corev1.EnvVar{
				{Name: "A", Value: "1"},
				{
					Name:      "WHO",
					ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
				},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("0.1"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				},
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("0.125Gi")},
			},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")},
			}},
			VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}},
		}}, Volumes: []corev1.Volume{{
			Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		}}},
	}
}

func (s *scene) deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: s.meta(name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.prefix}},
		Template: s.template(),
	}}
}

func deployments(s *scene) {
	all := s.client.AppsV1().Deployments(s.namespace)
	first := got(all.Create(s.ctx, s.deployment("a"), toCreate)).shown(s, "created")
	first.Spec.Replicas = ptr.To[int32](3)
	first.Status.Replicas = 7
	second := got(all.Update(s.ctx, first, toUpdate)).shown(s, "updated, status aside")
	second.Status = appsv1.DeploymentStatus{
		ObservedGeneration: second.Generation,
		Replicas:           3, ReadyReplicas: 2, UpdatedReplicas: 3, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{
			Type:           appsv1.DeploymentProgressing,
			Status:         corev1.ConditionTrue,
			Reason:         "Why",
			Message:        "words",
			LastUpdateTime: metav1.NewTime(moment),
		}},
	}
	second.Spec.Replicas = ptr.To[int32](9)
	got(all.UpdateStatus(s.ctx, second, toUpdate)).shown(s, "status updated, spec aside")
	got(all.Patch(
		s.ctx,
		first.Name,
		strategic,
		[]byte(`{"status":{"conditions":[{"type":"Available","status":"False"}]}}`),
		toPatch,
		"status",
	)).shown(s, "status patched")
	patch := `{"spec":{"template":{"spec":{"containers":[
		{"name":"side","image":"busybox"},
		{"name":"web","image":"nginx:1.28","env":[{"name":"A","$patch":"delete"}]}
	]}}}}`
	got(all.Patch(s.ctx, first.Name, strategic, []byte(patch), toPatch)).shown(s, "containers merged by name")
	_, err := all.Patch(
		s.ctx, first.Name, merge, []byte(`{"spec":{"selector":{"matchLabels":{"app":"other"}}}}`), toPatch,
	)
	s.refused("another selector", err)
	broken := s.deployment("b")
	broken.Spec.Template.Spec.Containers[0].Image = ""
	broken.Spec.Template.Spec.Containers[0].VolumeMounts[0].Name = "none"
	_, err = all.Create(s.ctx, broken, toCreate)
	s.refused("invalid", err)

	s.must(
		all.Delete(s.ctx, first.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)}),
		"deleting",
	)
	left, err := all.Get(s.ctx, first.Name, toGet)
	if err != nil {
		s.refused("deleted", err)
		return
	}
	s.show("deleted, to be finalized", left)
	got(all.Patch(s.ctx, first.Name, merge, []byte(`{"metadata":{"finalizers":null}}`), toPatch)).shown(s, "finalized")
	_, err = all.Get(s.ctx, first.Name, toGet)
	s.refused("gone", err)
}

func deploymentScale(s *scene) {
	all := s.client.AppsV1().Deployments(s.namespace)
	first := got(all.Create(s.ctx, s.deployment("a"), toCreate)).made(s, "creating")
	scale := got(all.GetScale(s.ctx, first.Name, toGet)).shown(s, "scale")
	s.say("the version of the deployment: %t", scale.ResourceVersion == first.ResourceVersion)
	old := scale.DeepCopy()
	scale.Spec.Replicas = 4
	got(all.UpdateScale(s.ctx, first.Name, scale, toUpdate)).shown(s, "scaled")
	old.Spec.Replicas = 5
	_, err := all.UpdateScale(s.ctx, first.Name, old, toUpdate)
	s.refused("an old version scaled", err)
	old.ResourceVersion = ""
	old.Spec.Replicas = -1
	_, err = all.UpdateScale(s.ctx, first.Name, old, toUpdate)
	s.refused("scaled below zero", err)
	_, err = all.GetScale(s.ctx, s.named("none"), toGet)
	s.refused("scale of nothing", err)
	last := got(all.Get(s.ctx, first.Name, toGet)).made(s, "getting")
	s.say("replicas %d, generation %d", *last.Spec.Replicas, last.Generation)
	s.must(all.Delete(s.ctx, first.Name, toDelete), "deleting")
}

func (s *scene) pod(name string) *corev1.Pod {
	template := s.template()
	return &corev1.Pod{ObjectMeta: s.meta(name), Spec: template.Spec}
}

func pods(s *scene) {
	all := s.client.CoreV1().Pods(s.namespace)
	first := got(all.Create(s.ctx, s.pod("a"), toCreate)).shown(s, "created")
	s.must(
		all.Bind(
			s.ctx,
			&corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: first.Name},
				Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
			},
			toCreate,
		),
		"binding",
	)
	bound := got(all.Get(s.ctx, first.Name, toGet)).shown(s, "bound")
	err := all.Bind(
		s.ctx,
		&corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: first.Name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "node-2"},
		},
		toCreate,
	)
	s.refused("bound twice", err)
	bound.Status.Phase = corev1.PodRunning
	bound.Status.PodIP = "10.1.2.3"
	bound.Status.PodIPs = []corev1.PodIP{{IP: "10.1.2.3"}}
	bound.Status.Conditions = append(
		bound.Status.Conditions,
		corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(moment),
		},
	)
	bound.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  "web",
		Ready: true,
		Image: "nginx:1.27",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(moment)}},
	}}
	running := got(all.UpdateStatus(s.ctx, bound, toUpdate)).shown(s, "running")
	for _, selector := range []string{
		"status.phase=Running",
		"status.phase!=Running",
		"spec.nodeName=node-1",
		"metadata.name=" + first.Name + ",status.podIP=10.1.2.3",
	} {
		found := got(all.List(
			s.ctx, metav1.ListOptions{LabelSelector: s.selector(), FieldSelector: selector},
		)).made(s, selector)
		s.say("%s: %d", selector, len(found.Items))
	}
	running.Spec.Containers[0].Image = "nginx:1.28"
	changed := got(all.Update(s.ctx, running, toUpdate)).made(s, "another image")
	s.say("image %s, generation %d", changed.Spec.Containers[0].Image, changed.Generation)
	changed.Spec.NodeName = "node-2"
	changed.Spec.Containers[0].Ports = nil
	_, err = all.Update(s.ctx, changed, toUpdate)
	s.refused("what of a pod may not change", err)
	s.must(all.Delete(s.ctx, first.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](7)}), "deleting")
	got(all.Get(s.ctx, first.Name, toGet)).shown(s, "told to end")
	s.must(all.Delete(s.ctx, first.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}), "deleting")
	_, err = all.Get(s.ctx, first.Name, toGet)
	s.refused("gone", err)
}

func eviction(s *scene) {
	all := s.client.CoreV1().Pods(s.namespace)
	first := got(all.Create(s.ctx, s.pod("a"), toCreate)).made(s, "creating")
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: s.meta("a"),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromString("50%")), Selector: &metav1.LabelSelector{MatchLabels: s.labels()},
		},
	}
	got(s.client.PolicyV1().PodDisruptionBudgets(s.namespace).Create(s.ctx, budget, toCreate)).shown(s, "budget")
	wish := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: s.namespace}}
	wish.DeleteOptions = &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	s.must(s.client.PolicyV1().Evictions(s.namespace).Evict(s.ctx, wish), "evicting")
	_, err := all.Get(s.ctx, first.Name, toGet)
	s.refused("evicted", err)
	broken := s.pod("b")
	broken.Spec.RestartPolicy = "Sometimes"
	broken.Spec.Containers = append(broken.Spec.Containers, broken.Spec.Containers[0])
	_, err = all.Create(s.ctx, broken, toCreate)
	s.refused("invalid", err)
}
