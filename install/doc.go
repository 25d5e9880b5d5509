// SPDX-License-Identifier: Apache-2.0

// Package install puts the controller into a cluster and takes it out again, and
// creates and triggers Fleets there, as a user of Flux knows it:
//
//	objects, err := install.Manifests(install.Options{})   // what kubectl apply -k config/default applies
//	cluster, err := install.Connect(kubeconfig, context, tell)
//	err = cluster.Install(ctx, objects)
//	err = cluster.CreateFleet(ctx, fleet)
//	ready, err := cluster.Reconcile(ctx, fleetName)
//
// What it does is told step by step; it prints nothing. Nothing here reaches a member.
package install
