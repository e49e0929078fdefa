// What the documents name has to be there, and values have to be those that Kubernetes knows.
package main

import (
	"fmt"
	"regexp"
	"slices"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

type faults []string

func (found *faults) add(format string, of ...any) {
	*found = append(*found, fmt.Sprintf(format, of...))
}

func (found *faults) of(read *manifests) {
	for _, each := range read.Secrets {
		found.ofName("Secret", each.ObjectMeta)
	}
	for _, each := range read.ConfigMaps {
		found.ofName("ConfigMap", each.ObjectMeta)
	}
	for _, each := range read.Services {
		found.ofName("Service", each.ObjectMeta)
		found.ofService(read, each)
	}
	for _, each := range read.StatefulSets {
		found.ofName("StatefulSet", each.ObjectMeta)
		found.ofStatefulSet(read, each)
	}
	for _, each := range read.Budgets {
		found.ofName("PodDisruptionBudget", each.ObjectMeta)
		found.ofPods(read, "the budget "+each.Name, each.Spec.Selector)
	}
}

func (found *faults) ofName(kind string, of meta.ObjectMeta) {
	for _, fault := range validation.IsDNS1123Label(of.Name) {
		found.add("%s %q: %s", kind, of.Name, fault)
	}
	for name, value := range of.Labels {
		for _, fault := range append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...) {
			found.add("%s %s, label %s: %s", kind, of.Name, name, fault)
		}
	}
}

func (found *faults) ofService(read *manifests, service *core.Service) {
	name := "the service " + service.Name
	known(found, name+", sessionAffinity", service.Spec.SessionAffinity, core.ServiceAffinityClientIP, core.ServiceAffinityNone)
	sets := found.ofPods(read, name, &meta.LabelSelector{MatchLabels: service.Spec.Selector})
	for _, port := range service.Spec.Ports {
		for _, set := range sets {
			found.ofPort(set, name, port.TargetPort)
		}
	}
}

// ofPods gives the sets whose pods are selected.
func (found *faults) ofPods(read *manifests, who string, selector *meta.LabelSelector) []*apps.StatefulSet {
	var selected []*apps.StatefulSet
	matches, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		found.add("%s: %v", who, err)
		return nil
	}
	for _, set := range read.StatefulSets {
		if matches.Matches(labels.Set(set.Spec.Template.Labels)) {
			selected = append(selected, set)
		}
	}
	if len(selected) == 0 || matches.Empty() {
		found.add("%s selects no pods, or all", who)
	}
	return selected
}

func (found *faults) ofPort(set *apps.StatefulSet, who string, port intstr.IntOrString) {
	for _, container := range set.Spec.Template.Spec.Containers {
		for _, open := range container.Ports {
			if port.StrVal == open.Name || port.Type == intstr.Int && port.IntVal == open.ContainerPort {
				return
			}
		}
	}
	found.add("%s: no container has the port %s", who, port.String())
}

func (found *faults) ofStatefulSet(read *manifests, set *apps.StatefulSet) {
	spec, pod := set.Spec, set.Spec.Template.Spec
	known(found, "podManagementPolicy", spec.PodManagementPolicy, apps.ParallelPodManagement, apps.OrderedReadyPodManagement)
	known(found, "updateStrategy", spec.UpdateStrategy.Type, apps.RollingUpdateStatefulSetStrategyType, apps.OnDeleteStatefulSetStrategyType)
	if kept := spec.PersistentVolumeClaimRetentionPolicy; kept != nil {
		known(found, "whenScaled", kept.WhenScaled, apps.RetainPersistentVolumeClaimRetentionPolicyType, apps.DeletePersistentVolumeClaimRetentionPolicyType)
		known(found, "whenDeleted", kept.WhenDeleted, apps.RetainPersistentVolumeClaimRetentionPolicyType, apps.DeletePersistentVolumeClaimRetentionPolicyType)
	}
	if !slices.Contains(found.ofPods(read, "the set "+set.Name, spec.Selector), set) {
		found.add("the set %s does not select its own pods", set.Name)
	}
	if !slices.ContainsFunc(read.Services, func(each *core.Service) bool {
		return each.Name == spec.ServiceName && each.Spec.ClusterIP == core.ClusterIPNone
	}) {
		found.add("serviceName %q: there is no headless service of this name", spec.ServiceName)
	}
	for _, spread := range pod.TopologySpreadConstraints {
		known(found, "whenUnsatisfiable", spread.WhenUnsatisfiable, core.ScheduleAnyway, core.DoNotSchedule)
		found.ofPods(read, "topologySpreadConstraints", spread.LabelSelector)
	}
	if of := pod.SecurityContext; of != nil {
		if of.FSGroupChangePolicy != nil {
			known(found, "fsGroupChangePolicy", *of.FSGroupChangePolicy, core.FSGroupChangeOnRootMismatch, core.FSGroupChangeAlways)
		}
		if of.SeccompProfile != nil {
			known(found, "seccompProfile", of.SeccompProfile.Type, core.SeccompProfileTypeRuntimeDefault, core.SeccompProfileTypeLocalhost)
		}
	}
	volumes := found.ofVolumes(read, set)
	for _, container := range pod.Containers {
		found.ofContainer(read, set, container, volumes)
	}
}

// ofVolumes gives their names.
func (found *faults) ofVolumes(read *manifests, set *apps.StatefulSet) []string {
	var names []string
	for _, volume := range set.Spec.Template.Spec.Volumes {
		names = append(names, volume.Name)
		if of := volume.ConfigMap; of != nil {
			if !slices.ContainsFunc(read.ConfigMaps, func(each *core.ConfigMap) bool { return each.Name == of.Name }) {
				found.add("the volume %s: there is no ConfigMap %q", volume.Name, of.Name)
			}
		}
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		names = append(names, claim.Name)
		for _, mode := range claim.Spec.AccessModes {
			known(found, "accessModes", mode, core.ReadWriteOnce, core.ReadWriteOncePod)
		}
		if claim.Spec.Resources.Requests.Storage().IsZero() {
			found.add("the claim %s asks for no storage", claim.Name)
		}
	}
	return names
}

func (found *faults) ofContainer(read *manifests, set *apps.StatefulSet, container core.Container, volumes []string) {
	for _, mount := range container.VolumeMounts {
		if !slices.Contains(volumes, mount.Name) {
			found.add("volumeMounts: there is no volume %q", mount.Name)
		}
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		if !slices.ContainsFunc(container.VolumeMounts, func(mount core.VolumeMount) bool { return mount.Name == claim.Name }) {
			found.add("the claim %q is not mounted", claim.Name)
		}
	}
	for _, port := range container.Ports {
		for _, fault := range validation.IsValidPortName(port.Name) {
			found.add("the port %q: %s", port.Name, fault)
		}
	}
	for name, probe := range map[string]*core.Probe{
		"startupProbe": container.StartupProbe, "livenessProbe": container.LivenessProbe, "readinessProbe": container.ReadinessProbe,
	} {
		if probe == nil || probe.HTTPGet == nil {
			found.add("there is no %s over HTTP", name)
		} else {
			found.ofPort(set, name, probe.HTTPGet.Port)
		}
	}
	found.ofVariables(read, container.Env)
	for name, asked := range container.Resources.Requests {
		if limit, has := container.Resources.Limits[name]; has && asked.Cmp(limit) > 0 {
			found.add("resources: more %s is asked for than is allowed", name)
		}
	}
}

var (
	// As in $(NAME), which Kubernetes replaces.
	reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)
	// What of a pod a variable may be: the "downward API".
	podFields = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "status.hostIP", "status.podIP"}
)

func (found *faults) ofVariables(read *manifests, variables []core.EnvVar) {
	var before []string
	for _, variable := range variables {
		// A name that stands later stays as it is written.
		for _, named := range reference.FindAllStringSubmatch(variable.Value, -1) {
			if !slices.Contains(before, named[1]) {
				found.add("the variable %s: $(%s) is no variable before it", variable.Name, named[1])
			}
		}
		before = append(before, variable.Name)
		from := variable.ValueFrom
		switch {
		case from == nil:
		case from.FieldRef != nil:
			known(found, "the variable "+variable.Name+", fieldPath", from.FieldRef.FieldPath, podFields...)
		case !read.hasKey(from.SecretKeyRef):
			found.add("the variable %s: there is no such key of a Secret", variable.Name)
		}
	}
}

func (read *manifests) hasKey(named *core.SecretKeySelector) bool {
	return named != nil && slices.ContainsFunc(read.Secrets, func(each *core.Secret) bool {
		_, has := each.StringData[named.Key]
		return has && each.Name == named.Name
	})
}

func known[T ~string](found *faults, what string, value T, values ...T) {
	if value != "" && !slices.Contains(values, value) {
		found.add("%s: %q is none of %q", what, value, values)
	}
}
