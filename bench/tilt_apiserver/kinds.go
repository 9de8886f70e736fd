package main

import (
	"slices"

	"github.com/tilt-dev/tilt-apiserver/pkg/server/builder/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "usvc-dev.developer.microsoft.com", Version: "v1"}

type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

type AmbientEnvironment struct {
	Behavior string `json:"behavior,omitempty"`
}

type HttpHeader struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

type HttpProbe struct {
	Url     string       `json:"url"`
	Headers []HttpHeader `json:"headers,omitempty"`
}

type ProbeSchedule struct {
	Kind         string `json:"kind,omitempty"`
	Interval     string `json:"interval"`
	Timeout      string `json:"timeout,omitempty"`
	InitialDelay string `json:"initialDelay,omitempty"`
}

type HealthProbe struct {
	Name      string        `json:"name"`
	Type      string        `json:"type"`
	HttpProbe *HttpProbe    `json:"httpProbe,omitempty"`
	Schedule  ProbeSchedule `json:"schedule"`
}

type ExecutableSpec struct {
	ExecutablePath         string              `json:"executablePath"`
	WorkingDirectory       string              `json:"workingDirectory,omitempty"`
	Args                   []string            `json:"args,omitempty"`
	Env                    []EnvVar            `json:"env,omitempty"`
	EnvFiles               []string            `json:"envFiles,omitempty"`
	ExecutionType          string              `json:"executionType,omitempty"`
	FallbackExecutionTypes []string            `json:"fallbackExecutionTypes,omitempty"`
	AmbientEnvironment     *AmbientEnvironment `json:"ambientEnvironment,omitempty"`
	Start                  *bool               `json:"start,omitempty"`
	Stop                   bool                `json:"stop,omitempty"`
	Mode                   string              `json:"mode,omitempty"`
	Persistent             bool                `json:"persistent,omitempty"`
	LifecycleKey           string              `json:"lifecycleKey,omitempty"`
	MonitorPid             *int64              `json:"monitorPid,omitempty"`
	HealthProbes           []HealthProbe       `json:"healthProbes,omitempty"`
}

type HealthProbeResult struct {
	Outcome   string `json:"outcome"`
	Timestamp string `json:"timestamp"`
	ProbeName string `json:"probeName"`
	Reason    string `json:"reason,omitempty"`
}

type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
}

type ExecutableStatus struct {
	ExecutionID        string              `json:"executionID,omitempty"`
	Pid                *int64              `json:"pid,omitempty"`
	State              string              `json:"state,omitempty"`
	StartupTimestamp   string              `json:"startupTimestamp,omitempty"`
	FinishTimestamp    string              `json:"finishTimestamp,omitempty"`
	ExitCode           *int32              `json:"exitCode,omitempty"`
	StdOutFile         string              `json:"stdOutFile,omitempty"`
	StdErrFile         string              `json:"stdErrFile,omitempty"`
	EffectiveEnv       []EnvVar            `json:"effectiveEnv,omitempty"`
	EffectiveArgs      []string            `json:"effectiveArgs,omitempty"`
	HealthStatus       string              `json:"healthStatus,omitempty"`
	HealthProbeResults []HealthProbeResult `json:"healthProbeResults,omitempty"`
	Conditions         []Condition         `json:"conditions,omitempty"`
}

type Executable struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ExecutableSpec   `json:"spec,omitempty"`
	Status            ExecutableStatus `json:"status,omitempty"`
}

type ExecutableList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Executable `json:"items"`
}

type ServiceSpec struct {
	Address               string `json:"address,omitempty"`
	Port                  int32  `json:"port,omitempty"`
	Protocol              string `json:"protocol,omitempty"`
	AddressAllocationMode string `json:"addressAllocationMode,omitempty"`
}

type ServiceStatus struct {
	State            string `json:"state,omitempty"`
	ProxyProcessPid  *int64 `json:"proxyProcessPid,omitempty"`
	EffectiveAddress string `json:"effectiveAddress,omitempty"`
	EffectivePort    int32  `json:"effectivePort,omitempty"`
}

type Service struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ServiceSpec   `json:"spec,omitempty"`
	Status            ServiceStatus `json:"status,omitempty"`
}

type ServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Service `json:"items"`
}

var (
	_ resource.ObjectWithStatusSubResource = &Executable{}
	_ resource.ObjectWithStatusSubResource = &Service{}
)

func (in *Executable) GetObjectMeta() *metav1.ObjectMeta { return &in.ObjectMeta }
func (in *Executable) NamespaceScoped() bool             { return false }
func (in *Executable) New() runtime.Object               { return &Executable{} }
func (in *Executable) NewList() runtime.Object           { return &ExecutableList{} }
func (in *Executable) IsStorageVersion() bool            { return true }
func (in *Executable) GetSingularName() string           { return "executable" }
func (in *Executable) GetGroupVersionResource() schema.GroupVersionResource {
	return groupVersion.WithResource("executables")
}
func (in *Executable) GetStatus() resource.StatusSubResource { return in.Status }
func (in ExecutableStatus) CopyTo(parent resource.ObjectWithStatusSubResource) {
	parent.(*Executable).Status = in
}
func (in *ExecutableList) GetListMeta() *metav1.ListMeta { return &in.ListMeta }

func (in *Service) GetObjectMeta() *metav1.ObjectMeta { return &in.ObjectMeta }
func (in *Service) NamespaceScoped() bool             { return false }
func (in *Service) New() runtime.Object               { return &Service{} }
func (in *Service) NewList() runtime.Object           { return &ServiceList{} }
func (in *Service) IsStorageVersion() bool            { return true }
func (in *Service) GetSingularName() string           { return "service" }
func (in *Service) GetGroupVersionResource() schema.GroupVersionResource {
	return groupVersion.WithResource("services")
}
func (in *Service) GetStatus() resource.StatusSubResource { return in.Status }
func (in ServiceStatus) CopyTo(parent resource.ObjectWithStatusSubResource) {
	parent.(*Service).Status = in
}
func (in *ServiceList) GetListMeta() *metav1.ListMeta { return &in.ListMeta }

func (in *Executable) DeepCopyObject() runtime.Object {
	out := &Executable{}
	in.DeepCopyInto(out)
	return out
}

// The server calls it by reflection.
func (in *Executable) DeepCopyInto(out *Executable) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	spec, status := &out.Spec, &out.Status
	spec.Args, spec.EnvFiles, spec.Env = slices.Clone(spec.Args), slices.Clone(spec.EnvFiles), slices.Clone(spec.Env)
	spec.FallbackExecutionTypes = slices.Clone(spec.FallbackExecutionTypes)
	spec.AmbientEnvironment, spec.Start, spec.MonitorPid = clone(spec.AmbientEnvironment), clone(spec.Start), clone(spec.MonitorPid)
	spec.HealthProbes = slices.Clone(spec.HealthProbes)
	for index := range spec.HealthProbes {
		probe := &spec.HealthProbes[index]
		if probe.HttpProbe = clone(probe.HttpProbe); probe.HttpProbe != nil {
			probe.HttpProbe.Headers = slices.Clone(probe.HttpProbe.Headers)
		}
	}
	status.Pid, status.ExitCode = clone(status.Pid), clone(status.ExitCode)
	status.EffectiveEnv, status.EffectiveArgs = slices.Clone(status.EffectiveEnv), slices.Clone(status.EffectiveArgs)
	status.HealthProbeResults, status.Conditions = slices.Clone(status.HealthProbeResults), slices.Clone(status.Conditions)
}

func (in *ExecutableList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Executable, len(in.Items))
	for index := range in.Items {
		in.Items[index].DeepCopyInto(&out.Items[index])
	}
	return &out
}

func (in *Service) DeepCopyObject() runtime.Object {
	out := &Service{}
	in.DeepCopyInto(out)
	return out
}

func (in *Service) DeepCopyInto(out *Service) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.ProxyProcessPid = clone(out.Status.ProxyProcessPid)
}

func (in *ServiceList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Service, len(in.Items))
	for index := range in.Items {
		in.Items[index].DeepCopyInto(&out.Items[index])
	}
	return &out
}

func clone[T any](in *T) *T {
	if in == nil {
		return nil
	}
	out := *in
	return &out
}
