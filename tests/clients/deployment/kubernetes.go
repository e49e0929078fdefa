// Kubernetes' own types, decoded so that no field may be unknown or twice.
package main

import (
	"bytes"
	"fmt"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// manifests has what the documents of the file say, by kind.
type manifests struct {
	Secrets      []*core.Secret                `json:"secrets"`
	ConfigMaps   []*core.ConfigMap             `json:"configMaps"`
	Services     []*core.Service               `json:"services"`
	StatefulSets []*apps.StatefulSet           `json:"statefulSets"`
	Budgets      []*policy.PodDisruptionBudget `json:"budgets"`
}

func readKubernetes(text []byte) report {
	read := manifests{}
	for number, document := range bytes.Split(text, []byte("\n---\n")) {
		if err := read.add(document); err != nil {
			return refused(fmt.Errorf("document %d: %w", number+1, err))
		}
	}
	faults := faults{}
	faults.of(&read)
	return report{Faults: append([]string{}, faults...), Read: read}
}

func (read *manifests) add(document []byte) error {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	var object any
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 Secret":
		object = into(&read.Secrets)
	case "v1 ConfigMap":
		object = into(&read.ConfigMaps)
	case "v1 Service":
		object = into(&read.Services)
	case "apps/v1 StatefulSet":
		object = into(&read.StatefulSets)
	case "policy/v1 PodDisruptionBudget":
		object = into(&read.Budgets)
	default:
		return fmt.Errorf("%s %s is not a kind that is expected", kind.APIVersion, kind.Kind)
	}
	return yaml.UnmarshalStrict(document, object)
}

func into[T any](list *[]*T) *T {
	object := new(T)
	*list = append(*list, object)
	return object
}
