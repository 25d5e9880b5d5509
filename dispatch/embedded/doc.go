// SPDX-License-Identifier: Apache-2.0

// Package embedded is a Kubernetes API server in this process, over HTTP, for
// the demo, for scale and for faults:
//
//	server, err := embedded.Start(embedded.Options{Name: "eu-1"})
//	member, err := dispatch.Push(server.Config(), dispatch.PushOptions{})
//
// It has what dispatch and kubectl rely on: discovery, the built-in kinds of
// kinds.go, custom kinds once their CustomResourceDefinition is there,
// namespaces, finalizers, generations, lists in pages, tables, watches, every
// kind of patch, and server-side apply with the field manager and the schemas
// of Kubernetes itself. It passes the contract of package dispatchtest.
//
// What it does not do: no authentication, no admission but that a namespace
// must exist, no controllers, so no Pods, no garbage collection and no status;
// no defaulting but what defaults.go names; no validation but names and what
// validate.go names; custom resources are neither validated nor pruned, and
// their lists are replaced as a whole; one version per built-in kind.
package embedded
