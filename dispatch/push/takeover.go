// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// A cluster that is pushed to may have been one that pulled. Its Flux or Argo CD
// applied what we published, with our marks, and owns our fields as well: one
// that the fleet drops would stay for good. So what they applied becomes ours,
// and the next apply leaves the object as the template says.

// labelField is in what somebody owns who wrote our label.
var labelField = []byte(`"f:` + object.LabelManaged + `"`)

// appliedPublished reports whether a manager applied a file of ours. Others can own our
// label too: who restores a backup owns all of the object, what a cluster put
// into it included, and that is not ours to take off.
func appliedPublished(m manager) bool {
	applied := m.Operation == string(metav1.ManagedFieldsOperationApply) || m.Manager == "argocd-controller"
	return applied && m.Manager != object.Manager && m.Subresource == "" && bytes.Contains(m.FieldsV1, labelField)
}

// takePublished makes ours what those own who applied a file of ours.
func (p *apiMember) takePublished(ctx context.Context, ref member.Ref, uid types.UID) error {
	var err error
	for range attempts {
		if err = p.tryPublished(ctx, ref, uid); !errors.Is(err, member.Conflict) {
			return err
		}
	}
	return err
}

func (p *apiMember) tryPublished(ctx context.Context, ref member.Ref, uid types.UID) error {
	found, err := p.Get(ctx, ref)
	if err != nil {
		return err
	}
	if found == nil || found.UID != uid {
		return &member.Error{Reason: member.Gone, Err: errors.New("the object was replaced")}
	}
	managers, err := withPublished(found.Managers)
	if err != nil {
		return &member.Error{Reason: member.Invalid, Err: err}
	}
	return p.patch(ctx, ref, []patchOp{
		{"replace", "/metadata/managedFields", managers},
		{"replace", "/metadata/resourceVersion", found.ResourceVersion},
	})
}

// withPublished are managers with those who applied a file of ours in our entry.
// An entry of another version names fields in another way, and stays.
func withPublished(managers []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	ours := slices.IndexFunc(managers, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == object.Manager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == ""
	})
	if ours < 0 {
		return managers, nil
	}
	all, err := fieldsIn(managers[ours])
	if err != nil {
		return nil, err
	}
	version := managers[ours].APIVersion
	var kept []metav1.ManagedFieldsEntry
	for _, m := range managers {
		raw := manager{Manager: m.Manager, Operation: string(m.Operation), Subresource: m.Subresource}
		if m.FieldsV1 != nil {
			raw.FieldsV1 = m.FieldsV1.GetRawBytes()
		}
		if m.APIVersion != version || !appliedPublished(raw) {
			kept = append(kept, m)
			continue
		}
		theirs, err := fieldsIn(m)
		if err != nil {
			return nil, err
		}
		all = all.Union(theirs)
	}
	raw, err := all.ToJSON()
	if err != nil {
		return nil, err
	}
	for i, m := range kept {
		if m.Manager == object.Manager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" {
			fields := &metav1.FieldsV1{}
			fields.SetRawBytes(raw)
			kept[i].FieldsV1 = fields
		}
	}
	return kept, leaveLifecycle(kept)
}

func fieldsIn(m metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	all := &fieldpath.Set{}
	if m.FieldsV1 == nil {
		return all, nil
	}
	return all, all.FromJSON(m.FieldsV1.GetRawReader())
}
