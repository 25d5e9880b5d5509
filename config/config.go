// SPDX-License-Identifier: Apache-2.0

// Package config has the manifests of the controller, which are files for kustomize:
//
//	kubectl apply -k config/default                     # the controller
//	kubectl apply -k config/monitoring                  # alerts and a dashboard, for the Prometheus operator
//	kubectl apply -k config/page                        # config/default, with the pages of the Fleets
//	kubectl apply -k config/sharding                    # config/default, with replicas that share the clusters
//	kubectl apply -k config/member-rbac/cluster-admin   # on a member: an account for the controller
//	kubectl apply -k config/member-rbac/least           # the same, which may do less
//
// Package install applies those of config/default from the program, and deletes those of
// config/page and config/sharding with them.
package config

import (
	"embed"
	"io/fs"
)

//go:embed crd rbac manager
var controller embed.FS

// Controller returns the manifests of the controller, in the directories crd, rbac and
// manager, with a kustomization each. What config/default makes of them is to be done:
// their namespace is called system, and they have no labels.
func Controller() fs.FS { return controller }

//go:embed page sharding
var additions embed.FS

// Additions returns what config/page and config/sharding add to the controller, in the
// directories page and sharding.
func Additions() fs.FS { return additions }
