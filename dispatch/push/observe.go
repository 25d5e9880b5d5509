// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch/member"
)

func (p *apiMember) Ready(ctx context.Context) (bool, error) {
	a, err := p.send(ctx, request{method: http.MethodGet, path: "/readyz"})
	defer a.done()
	// One that will not tell us serves all the same.
	return a.status == http.StatusOK || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden, err
}

func (p *apiMember) Read(ctx context.Context, ref member.Ref) (map[string]any, error) {
	a, o, err := p.get(ctx, ref, "")
	defer a.done()
	if err != nil || o == nil {
		return nil, err
	}
	var object unstructured.Unstructured // which reads whole numbers as int64
	if err := object.UnmarshalJSON(a.body); err != nil {
		return nil, notKubernetes(a.status)
	}
	return object.Object, nil
}
