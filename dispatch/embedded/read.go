// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// form is how a client wants objects: whole, their metadata, or as a table.
type form int

const (
	whole form = iota
	metadata
	table
)

// form is the first in the Accept header that is known here.
func (c *call) form() form {
	for accept := range strings.SplitSeq(c.r.Header.Get("Accept"), ",") {
		switch {
		case !strings.Contains(accept, "application/json"):
		case strings.Contains(accept, "as=Table"):
			return table
		case strings.Contains(accept, "as=PartialObjectMetadata"):
			return metadata
		case !strings.Contains(accept, "as="):
			return whole
		}
	}
	return whole
}

func rawExtension(raw []byte) runtime.RawExtension { return runtime.RawExtension{Raw: raw} }

func (f form) encode(k *kind, o *stored) []byte {
	switch f {
	case metadata:
		var part struct {
			Kind       string          `json:"kind"`
			APIVersion string          `json:"apiVersion"`
			Metadata   json.RawMessage `json:"metadata"`
		}
		if err := json.Unmarshal(o.raw, &part); err != nil {
			return []byte("{}")
		}
		part.Kind, part.APIVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
		raw, err := json.Marshal(part)
		if err != nil {
			return []byte("{}")
		}
		return raw
	case table:
		raw, err := json.Marshal(k.table([]*stored{o}, strconv.FormatInt(o.version, 10), ""))
		if err != nil {
			return []byte("{}")
		}
		return raw
	}
	if len(k.versions) > 1 {
		return newObject(inVersion(o.decoded(), k), o.version).raw
	}
	return o.raw
}

func (c *call) answer(w http.ResponseWriter, code int, o *stored) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(c.form().encode(c.kind, o))
}

// selector is what the query asks of an object.
func (c *call) selector() (func(*stored) bool, error) {
	query := c.r.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o *stored) bool {
		return byLabel.Matches(labels.Set(o.labels)) && (byField.Empty() || byField.Matches(fieldsOf(o)))
	}, nil
}

// fieldsOf are the fields that can be selected by: of the metadata, and the
// strings at the top of spec, status and an Event's object.
func fieldsOf(o *stored) fields.Set {
	set := fields.Set{"metadata.name": o.name, "metadata.namespace": o.namespace}
	content := o.decoded().Object
	for _, part := range []string{"spec", "status", "involvedObject"} {
		m, _ := content[part].(map[string]any)
		for name, v := range m {
			if s, ok := v.(string); ok {
				set[part+"."+name] = s
			}
		}
	}
	for _, name := range []string{"type", "reason", "reportingComponent"} {
		if s, ok := content[name].(string); ok {
			set[name] = s
		}
	}
	return set
}

// list answers with a page. The key after which a page goes on is in its
// token; objects that come and go in between are seen or not, as between two
// lists.
func (c *call) list(w http.ResponseWriter) {
	match, err := c.selector()
	if err != nil {
		refuse(w, err)
		return
	}
	query := c.r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	after, err := base64.RawURLEncoding.DecodeString(query.Get("continue"))
	if err != nil {
		refuse(w, apierrors.NewBadRequest("continue key is not valid: "+err.Error()))
		return
	}
	objects, version := c.s.list(c.kind, c.namespace)
	var page []*stored
	var next string
	for _, o := range objects {
		at := o.key()
		if len(after) > 0 && at <= string(after) || !match(o) {
			continue
		}
		if limit > 0 && len(page) == limit {
			next = base64.RawURLEncoding.EncodeToString([]byte(page[limit-1].key()))
			break
		}
		page = append(page, o)
	}
	resourceVersion := strconv.FormatInt(version, 10)
	form := c.form()
	if form == table {
		send(w, http.StatusOK, c.kind.table(page, resourceVersion, next))
		return
	}
	kind, apiVersion := c.Kind+"List", c.GroupVersion().String()
	if form == metadata {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	meta := map[string]any{"resourceVersion": resourceVersion}
	if next != "" {
		meta["continue"] = next
	}
	head, err := json.Marshal(map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": meta})
	if err != nil {
		refuse(w, err)
		return
	}
	var b bytes.Buffer
	b.Write(head[:len(head)-1])
	b.WriteString(`,"items":[`)
	for i, o := range page {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(form.encode(c.kind, o))
	}
	b.WriteString("]}")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b.Bytes())
}
