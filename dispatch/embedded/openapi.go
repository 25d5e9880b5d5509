// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/json"
	"net/http"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

// openapi says as much as kubectl needs to leave validation to the server: for
// each kind that a patch takes the parameter fieldValidation.
func (s *Server) openapi(w http.ResponseWriter, r *http.Request, path string) {
	if path == "openapi/v2" {
		openapiV2(w, r)
		return
	}
	paths := map[string]any{}
	for _, g := range s.store.groups() {
		for _, v := range g.versions {
			root := "apis/" + g.name + "/" + v
			if g.name == "" {
				root = "api/" + v
			}
			if path == "openapi/v3/"+root {
				send(w, http.StatusOK, openapiV3(root, g.kinds[v]))
				return
			}
			paths[root] = map[string]any{"serverRelativeURL": "/openapi/v3/" + root}
		}
	}
	if path != "openapi/v3" {
		http.NotFound(w, r)
		return
	}
	send(w, http.StatusOK, map[string]any{"paths": paths})
}

func openapiV3(root string, kinds []*kind) map[string]any {
	paths := map[string]any{}
	for _, k := range kinds {
		path := "/" + root + "/" + k.resource + "/{name}"
		if k.namespaced {
			path = "/" + root + "/namespaces/{namespace}/" + k.resource + "/{name}"
		}
		paths[path] = map[string]any{"patch": map[string]any{
			"operationId": "patch" + k.Kind,
			"parameters": []any{
				map[string]any{"name": "fieldValidation", "in": "query", "schema": map[string]any{"type": "string"}},
				map[string]any{"name": "dryRun", "in": "query", "schema": map[string]any{"type": "string"}},
			},
			"responses":                       map[string]any{"200": map[string]any{"description": "OK"}},
			"x-kubernetes-action":             "patch",
			"x-kubernetes-group-version-kind": map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind},
		}}
	}
	return map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": "Kubernetes", "version": versionInfo.GitVersion},
		"paths":      paths,
		"components": map[string]any{"schemas": map[string]any{}},
	}
}

func openapiV2(w http.ResponseWriter, r *http.Request) {
	raw, err := json.Marshal(map[string]any{
		"swagger":     "2.0",
		"info":        map[string]any{"title": "Kubernetes", "version": versionInfo.GitVersion},
		"paths":       map[string]any{},
		"definitions": map[string]any{},
	})
	if err != nil {
		refuse(w, err)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "protobuf") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
		return
	}
	doc, err := openapi_v2.ParseDocument(raw)
	if err != nil {
		refuse(w, err)
		return
	}
	if raw, err = proto.Marshal(doc); err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	_, _ = w.Write(raw)
}
