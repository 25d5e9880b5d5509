// SPDX-License-Identifier: Apache-2.0

// Package api contains the types that users write into a fleet repository, or
// read from a command that prints. Groups, versions, kinds and JSON field names
// are Karmada's, so a file that Karmada accepts decodes here unchanged; our own
// settings are in fairlead.dev. These packages only contain data: the rules
// about it are in fleet and propagate.
package api

//go:generate go run k8s.io/code-generator/cmd/deepcopy-gen@v0.36.6 --output-file zz_generated.deepcopy.go --go-header-file ../hack/licence.go.txt ./policy/v1alpha1 ./cluster/v1alpha1 ./work/v1alpha1 ./work/v1alpha2 ./fleet/v1alpha1 ./config/v1alpha1 ./apps/v1alpha1
//go:generate go tool controller-gen crd paths=./fleet/v1alpha1 output:crd:artifacts:config=../config/crd/bases

// FleetConfig lives in git and is no resource of a cluster.
//go:generate rm ../config/crd/bases/fairlead.dev_fleetconfigs.yaml
