// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// attempts is how often a change is made again because someone else wrote in
// between.
const attempts = 5

type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Release removes label, annotations and our entry among the managers in one
// request. The other entries go back byte for byte.
func (p *apiMember) Release(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	var err error
	for range attempts {
		if err = p.release(ctx, ref, uid, of); !errors.Is(err, member.Conflict) {
			return err
		}
	}
	return err
}

func (p *apiMember) release(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	a, o, err := p.get(ctx, ref, asMetadata)
	if errors.Is(err, member.NotServed) {
		if _, err := p.kinds.find(ctx, ref.GroupVersionKind); errors.Is(err, member.NotServed) {
			return nil // and neither is the object
		}
	}
	if err != nil || o == nil {
		return err
	}
	if uid != "" && o.Metadata.UID != uid || of.Whose(o.Metadata.Labels, o.Metadata.Annotations, uid != "") != object.Ours {
		return nil
	}
	ops := []patchOp{
		// A replace of the resourceVersion is a precondition: the server
		// answers 409 when it is no longer that one.
		{"replace", "/metadata/resourceVersion", o.Metadata.ResourceVersion},
	}
	for _, key := range ourKeys(o.Metadata.Labels) {
		ops = append(ops, patchOp{Op: "remove", Path: "/metadata/labels/" + pointer(key)})
	}
	for _, key := range ourKeys(o.Metadata.Annotations) {
		ops = append(ops, patchOp{Op: "remove", Path: "/metadata/annotations/" + pointer(key)})
	}
	others, had, err := withoutUs(a.body)
	if err != nil {
		return err
	}
	if had {
		ops = append(ops, patchOp{"replace", "/metadata/managedFields", others})
	}
	return p.patch(ctx, ref, ops)
}

func ourKeys(m map[string]string) []string {
	var ours []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if object.IsOurs(key) {
			ours = append(ours, key)
		}
	}
	return ours
}

// pointer escapes a key for a JSON pointer.
func pointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// withoutUs returns the managers of an object other than us, and whether we
// were among them. Without others the list is one empty entry: an empty list
// would have the server restore what it had.
func withoutUs(body []byte) ([]json.RawMessage, bool, error) {
	var o struct {
		Metadata struct {
			ManagedFields []json.RawMessage `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, false, notKubernetes(http.StatusOK)
	}
	var others []json.RawMessage
	for _, raw := range o.Metadata.ManagedFields {
		var entry struct {
			Manager string `json:"manager"`
		}
		if err := json.Unmarshal(raw, &entry); err != nil {
			return nil, false, notKubernetes(http.StatusOK)
		}
		if entry.Manager != object.Manager {
			others = append(others, raw)
		}
	}
	had := len(others) != len(o.Metadata.ManagedFields)
	if had && len(others) == 0 {
		others = []json.RawMessage{json.RawMessage(`{}`)}
	}
	return others, had, nil
}

func (p *apiMember) patch(ctx context.Context, ref member.Ref, body any) error {
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return &member.Error{Reason: member.Invalid, Err: err}
		}
	}
	path, err := p.at(ctx, ref)
	if err != nil {
		return err
	}
	a, err := p.send(ctx, request{
		method:      http.MethodPatch,
		path:        path,
		query:       url.Values{"fieldManager": {object.Manager}},
		accept:      asMetadata,
		contentType: "application/json-patch+json",
		body:        raw,
	})
	if err != nil {
		return err
	}
	defer a.done()
	if absent(a, ref) {
		return nil
	}
	_, err = p.decode(ref, a)
	return err
}

// Adopt hands us the fields of those who wrote with updates.
func (p *apiMember) Adopt(ctx context.Context, ref member.Ref) error {
	var err error
	for range attempts {
		if err = p.adopt(ctx, ref); !errors.Is(err, member.Conflict) {
			return err
		}
	}
	return err
}

func (p *apiMember) adopt(ctx context.Context, ref member.Ref) error {
	found, err := p.Get(ctx, ref)
	if err != nil || found == nil {
		return err
	}
	names := sets.Set[string]{}
	for _, m := range found.Managers {
		if object.IsClientSide(m) {
			names.Insert(m.Manager)
		}
	}
	if len(names) == 0 {
		return nil
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetResourceVersion(found.ResourceVersion)
	o.SetManagedFields(slices.Clone(found.Managers))
	if err := csaupgrade.UpgradeManagedFields(o, names, object.Manager); err != nil {
		return &member.Error{Reason: member.Invalid, Err: err}
	}
	if err := leaveLifecycle(o.ManagedFields); err != nil {
		return &member.Error{Reason: member.Invalid, Err: err}
	}
	return p.patch(ctx, ref, []patchOp{
		{"replace", "/metadata/managedFields", o.ManagedFields},
		{"replace", "/metadata/resourceVersion", found.ResourceVersion},
	})
}

// leaveLifecycle takes finalizers and owner references out of what we own.
// Admission sets them under the name of whoever created the object, and an
// apply that does not name them would remove them.
func leaveLifecycle(entries []metav1.ManagedFieldsEntry) error {
	for i, m := range entries {
		if m.Manager != object.Manager || m.Operation != metav1.ManagedFieldsOperationApply || m.FieldsV1 == nil {
			continue
		}
		var all fieldpath.Set
		if err := all.FromJSON(m.FieldsV1.GetRawReader()); err != nil {
			return err
		}
		kept := fieldpath.NewSet()
		all.Iterate(func(path fieldpath.Path) {
			if !lifecycle(path) {
				kept.Insert(path.Copy())
			}
		})
		raw, err := kept.ToJSON()
		if err != nil {
			return err
		}
		fields := &metav1.FieldsV1{}
		fields.SetRawBytes(raw)
		entries[i].FieldsV1 = fields
	}
	return nil
}

func lifecycle(path fieldpath.Path) bool {
	if len(path) < 2 || path[0].FieldName == nil || path[1].FieldName == nil || *path[0].FieldName != "metadata" {
		return false
	}
	return *path[1].FieldName == "finalizers" || *path[1].FieldName == "ownerReferences"
}
