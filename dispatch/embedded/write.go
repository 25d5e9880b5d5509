// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// largest is the limit of a real server for a request's body.
const largest = 3 << 20

func (c *call) body() ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(c.r.Body, largest+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(raw) > largest {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", largest))
	}
	return raw, nil
}

// decode reads a body as its Content-Type says.
func (c *call) decode(raw []byte) (*unstructured.Unstructured, error) {
	if !bytes.HasPrefix(raw, protobufMagic) {
		return decode(raw)
	}
	// kubectl create sends what it has a Go type of in this form.
	typed, _, err := fromProtobuf().Decode(raw, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest("error decoding protobuf: " + err.Error())
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, apierrors.NewBadRequest("error decoding protobuf: " + err.Error())
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// protobufMagic begins every body in Kubernetes' protobuf.
var protobufMagic = []byte("k8s\x00")

var fromProtobuf = sync.OnceValue(func() runtime.Decoder {
	return protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
})

// decode reads JSON or YAML.
func decode(raw []byte) (*unstructured.Unstructured, error) {
	var content map[string]any
	if len(raw) == 0 || raw[0] != '{' {
		asJSON, err := yaml.YAMLToJSON(raw)
		if err != nil {
			return nil, apierrors.NewBadRequest("error decoding YAML: " + err.Error())
		}
		raw = asJSON
	}
	if err := utiljson.Unmarshal(raw, &content); err != nil || content == nil {
		return nil, apierrors.NewBadRequest("the body is not an object")
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// writer is the field manager that the request names, or its client.
func (c *call) writer() string {
	if name := c.r.URL.Query().Get("fieldManager"); name != "" {
		return name
	}
	name, _, _ := strings.Cut(c.r.UserAgent(), "/")
	if name == "" {
		return "unknown"
	}
	return name
}

func (c *call) dry() bool { return c.r.URL.Query().Has("dryRun") }

func (c *call) create() (*stored, error) {
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	u, err := c.decode(raw)
	if err != nil {
		return nil, err
	}
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(u.GetGenerateName() + newUID()[:5])
	}
	c.name = u.GetName()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.objects[c.groupResource()][key(c.namespace, c.name)] != nil {
		return nil, apierrors.NewAlreadyExists(c.groupResource(), c.name)
	}
	u.SetResourceVersion("")
	u.SetUID("")
	return c.write(nil, u, c.tracked)
}

func (c *call) update() (*stored, error) {
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	u, err := c.decode(raw)
	if err != nil {
		return nil, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	live := c.s.objects[c.groupResource()][key(c.namespace, c.name)]
	if live == nil {
		return nil, apierrors.NewNotFound(c.groupResource(), c.name)
	}
	return c.write(live, u, c.tracked)
}

func (c *call) patch() (*stored, bool, error) {
	raw, err := c.body()
	if err != nil {
		return nil, false, err
	}
	contentType, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	live := c.s.objects[c.groupResource()][key(c.namespace, c.name)]
	if contentType == "application/apply-patch+yaml" {
		o, err := c.apply(live, raw)
		return o, live == nil, err
	}
	if live == nil {
		return nil, false, apierrors.NewNotFound(c.groupResource(), c.name)
	}
	patched, err := c.patched(contentType, live, raw)
	if err != nil {
		return nil, false, err
	}
	u, err := decode(patched)
	if err != nil {
		return nil, false, err
	}
	o, err := c.write(live, u, c.tracked)
	return o, false, err
}

func (c *call) patched(contentType string, live *stored, raw []byte) ([]byte, error) {
	switch contentType {
	case "application/json-patch+json":
		patch, err := jsonpatch.DecodePatch(raw)
		if err != nil {
			return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
		}
		out, err := patch.Apply(live.raw)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", c.groupResource(), c.name, err.Error(), 0, true)
		}
		return out, nil
	case "application/merge-patch+json":
		out, err := jsonpatch.MergePatch(live.raw, raw)
		if err != nil {
			return nil, apierrors.NewBadRequest("error applying merge patch: " + err.Error())
		}
		return out, nil
	case "application/strategic-merge-patch+json":
		if c.typed != nil {
			out, err := strategicpatch.StrategicMergePatch(live.raw, raw, reflect.New(c.typed).Elem().Interface())
			if err != nil {
				return nil, apierrors.NewBadRequest("error applying strategic merge patch: " + err.Error())
			}
			return out, nil
		}
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", c.groupResource(), c.name,
		"the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml", 0, true)
}

// apply is one server-side apply.
func (c *call) apply(live *stored, raw []byte) (*stored, error) {
	patch, err := decode(raw)
	if err != nil {
		return nil, err
	}
	query := c.r.URL.Query()
	if query.Get("fieldManager") == "" {
		return nil, apierrors.NewBadRequest("PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch")
	}
	if patch.GroupVersionKind() != c.GroupVersionKind {
		return nil, apierrors.NewBadRequest("the kind of the apply patch is not that of the request")
	}
	if live == nil && patch.GetUID() != "" {
		return nil, apierrors.NewConflict(c.groupResource(), c.name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", patch.GetUID()))
	}
	if err := c.place(patch); err != nil {
		return nil, err
	}
	if err := c.strict(patch); err != nil {
		return nil, err
	}
	force, _ := strconv.ParseBool(query.Get("force"))
	return c.write(live, patch, func(was, now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		manager, err := c.fieldManager(c.subresource)
		if err != nil {
			return nil, err
		}
		merged, err := manager.Apply(was, now, c.writer(), force)
		if err != nil {
			return nil, err
		}
		out := merged.(*unstructured.Unstructured)
		// Owners are tracked by now; what follows must not lose them.
		owners := out.GetManagedFields()
		content, err := c.normal(out.Object)
		if err != nil {
			return nil, fmt.Errorf("failed to convert new object (%s; %s) to proper version: %w", key(c.namespace, c.name), c.GroupVersionKind, err)
		}
		out = &unstructured.Unstructured{Object: content}
		out.SetManagedFields(owners)
		return out, nil
	})
}

// tracked brings an object that was written as a whole into its normal form
// and notes who owns what.
func (c *call) tracked(was, now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	given, _, _ := unstructured.NestedFieldNoCopy(now.Object, "metadata", "managedFields")
	content, err := c.normal(now.Object)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", c.Kind, c.Version, c.Kind, err))
	}
	if given != nil {
		content["metadata"].(map[string]any)["managedFields"] = given
	}
	manager, err := c.fieldManager(c.subresource)
	if err != nil {
		return nil, err
	}
	out := manager.UpdateNoErrors(was, &unstructured.Unstructured{Object: content}, c.writer())
	return out.(*unstructured.Unstructured), nil
}

// write makes a new version out of the one before and what was sent. The lock
// is held.
func (c *call) write(live *stored, sent *unstructured.Unstructured, merge func(was, now *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*stored, error) {
	if err := c.place(sent); err != nil {
		return nil, err
	}
	was := &unstructured.Unstructured{Object: map[string]any{}}
	was.SetGroupVersionKind(c.GroupVersionKind)
	if live != nil {
		was = inVersion(live.decoded(), c.kind)
		if v := sent.GetResourceVersion(); v != "" && v != was.GetResourceVersion() {
			return nil, apierrors.NewConflict(c.groupResource(), c.name,
				errors.New("the object has been modified; please apply your changes to the latest version and try again"))
		}
		if uid := sent.GetUID(); uid != "" && uid != was.GetUID() {
			return nil, c.immutable("metadata.uid", uid)
		}
	}
	if err := c.strict(sent); err != nil {
		return nil, err
	}
	if c.typed != nil && c.status && c.subresource == "" && live == nil {
		unstructured.RemoveNestedField(sent.Object, "status")
	}
	now, err := merge(was, sent)
	if err != nil {
		return nil, err
	}
	c.keep(was, now, live != nil)
	if live == nil {
		if c.namespaced && !c.s.hasNamespace(c.namespace) {
			return nil, apierrors.NewNotFound(namespaceResource, c.namespace)
		}
		begin(now)
	}
	if err := validate(c.kind, now, was, live != nil); err != nil {
		return nil, err
	}
	c.count(was, now, live != nil)
	if live != nil && unchanged(was, now) {
		return live, nil
	}
	if c.dry() {
		now.SetResourceVersion(was.GetResourceVersion())
		return newObject(now, c.s.version), nil
	}
	if live == nil {
		return c.s.put(c.kind, now, added), nil
	}
	if now.GetDeletionTimestamp() != nil && len(now.GetFinalizers()) == 0 {
		return c.s.drop(c.kind, now), nil
	}
	return c.s.put(c.kind, now, modified), nil
}

// place checks and completes what the path says of the object.
func (c *call) place(u *unstructured.Unstructured) error {
	if gvk := u.GroupVersionKind(); gvk.Kind != c.Kind || gvk.Group != c.Group || c.typed != nil && gvk.Version != c.Version {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: no kind %q is registered for version %q",
			c.Kind, c.Version, c.Kind, gvk.Kind, gvk.GroupVersion()))
	}
	meta, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		u.Object["metadata"] = meta
	}
	if name := u.GetName(); name != c.name {
		if name != "" {
			return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, c.name))
		}
		meta["name"] = c.name
	}
	switch namespace := u.GetNamespace(); {
	case namespace == c.namespace:
	case namespace == "" && c.namespaced:
		meta["namespace"] = c.namespace
	case !c.namespaced:
		delete(meta, "namespace")
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// inVersion is a custom object in the version that is asked for.
func inVersion(u *unstructured.Unstructured, k *kind) *unstructured.Unstructured {
	if u.GroupVersionKind() != k.GroupVersionKind {
		u.SetGroupVersionKind(k.GroupVersionKind)
	}
	return u
}

// normal is the object as its Go type reads and writes it: unknown fields go,
// quantities get their canonical form, defaults come.
func (k *kind) normal(content map[string]any) (map[string]any, error) {
	if k.typed == nil {
		return content, nil
	}
	typed := reflect.New(k.typed).Interface()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		return nil, err
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	out["apiVersion"], out["kind"] = k.GroupVersion().String(), k.Kind
	setDefaults(k, out)
	return out, nil
}

// strict refuses unknown fields where the client asks for it.
func (c *call) strict(u *unstructured.Unstructured) error {
	if c.typed == nil || c.r.URL.Query().Get("fieldValidation") != metav1.FieldValidationStrict {
		return nil
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, reflect.New(c.typed).Interface(), true)
	if err == nil {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", c.Kind, c.Version, c.Kind, err))
}

// keep restores what a write cannot change.
func (c *call) keep(was, now *unstructured.Unstructured, exists bool) {
	switch {
	case c.subresource == "status":
		status, ok := now.Object["status"]
		owners := now.GetManagedFields()
		now.Object = was.DeepCopy().Object
		if ok {
			now.Object["status"] = status
		}
		now.SetManagedFields(owners)
	case c.status && exists:
		if status, ok := was.Object["status"]; ok {
			now.Object["status"] = status
		} else {
			delete(now.Object, "status")
		}
	case c.status && c.typed == nil:
		delete(now.Object, "status")
	}
	if !exists {
		return
	}
	meta := now.Object["metadata"].(map[string]any)
	old := was.Object["metadata"].(map[string]any)
	for _, name := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"} {
		if v, ok := old[name]; ok {
			meta[name] = v
		} else {
			delete(meta, name)
		}
	}
}

// count bumps the generation when the wish changed.
func (c *call) count(was, now *unstructured.Unstructured, exists bool) {
	if !c.counts() {
		return
	}
	if !exists {
		now.SetGeneration(1)
		return
	}
	if c.typed == nil {
		for field, v := range now.Object {
			if field != "metadata" && field != "status" && !reflect.DeepEqual(v, was.Object[field]) {
				now.SetGeneration(was.GetGeneration() + 1)
				return
			}
		}
	}
	if !reflect.DeepEqual(now.Object["spec"], was.Object["spec"]) {
		now.SetGeneration(was.GetGeneration() + 1)
	}
}

// counts reports whether objects of the kind have a generation.
func (k *kind) counts() bool {
	if k.typed == nil {
		return true
	}
	if k.Group == "" {
		return k.Kind == "ReplicationController" || k.Kind == "Pod"
	}
	_, hasSpec := k.typed.FieldByName("Spec")
	return hasSpec || k.Group == "admissionregistration.k8s.io"
}

// unchanged reports whether only the times of managers differ, for which a
// real server writes nothing.
func unchanged(was, now *unstructured.Unstructured) bool {
	a, b := was.GetManagedFields(), now.GetManagedFields()
	if len(a) != len(b) {
		return false
	}
	for i := range b {
		b[i].Time = a[i].Time
	}
	same := now.DeepCopy()
	same.SetManagedFields(b)
	return reflect.DeepEqual(was.Object, same.Object)
}

func (c *call) immutable(path string, value any) error {
	return apierrors.NewInvalid(c.GroupVersionKind.GroupKind(), c.name, field.ErrorList{
		field.Invalid(field.NewPath(path), value, "field is immutable"),
	})
}

func (c *call) delete(w http.ResponseWriter) {
	o, gone, err := c.remove()
	if err != nil {
		refuse(w, err)
		return
	}
	if !gone || strings.Contains(c.r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		c.answer(w, http.StatusOK, o)
		return
	}
	send(w, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: c.name, Group: c.Group, Kind: c.resource, UID: o.decoded().GetUID()},
	})
}

// remove deletes the object, or marks it where finalizers hold it.
func (c *call) remove() (o *stored, gone bool, err error) {
	raw, err := c.body()
	if err != nil {
		return nil, false, err
	}
	var options metav1.DeleteOptions
	if len(raw) > 0 {
		sent, err := c.decode(raw)
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, &options)
		}
		if err != nil {
			return nil, false, apierrors.NewBadRequest("error decoding DeleteOptions: " + err.Error())
		}
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	live := c.s.objects[c.groupResource()][key(c.namespace, c.name)]
	if live == nil {
		return nil, false, apierrors.NewNotFound(c.groupResource(), c.name)
	}
	u := live.decoded()
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != u.GetUID() {
			return nil, false, apierrors.NewConflict(c.groupResource(), c.name, fmt.Errorf(
				"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, u.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != u.GetResourceVersion() {
			return nil, false, apierrors.NewConflict(c.groupResource(), c.name, fmt.Errorf(
				"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, u.GetResourceVersion()))
		}
	}
	if c.Kind == "Namespace" && c.Group == "" && slices.Contains([]string{"default", "kube-system", "kube-public"}, c.name) {
		return nil, false, apierrors.NewForbidden(c.groupResource(), c.name, errors.New("this namespace may not be deleted"))
	}
	if c.dry() || len(options.DryRun) > 0 {
		return live, true, nil
	}
	return c.s.finish(c.kind, live)
}

// finish deletes an object, or marks it where finalizers hold it. The lock is
// held.
func (s *store) finish(k *kind, live *stored) (o *stored, gone bool, err error) {
	u := live.decoded()
	if len(u.GetFinalizers()) == 0 {
		return s.drop(k, u), true, nil
	}
	if u.GetDeletionTimestamp() != nil {
		return live, false, nil
	}
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	u.SetDeletionTimestamp(&now)
	zero := int64(0)
	u.SetDeletionGracePeriodSeconds(&zero)
	return s.put(k, u, modified), false, nil
}

func (c *call) deleteCollection(w http.ResponseWriter) {
	match, err := c.selector()
	if err != nil {
		refuse(w, err)
		return
	}
	objects, _ := c.s.list(c.kind, c.namespace)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, o := range objects {
		live := c.s.objects[c.groupResource()][o.key()]
		if live == nil || !match(live) {
			continue
		}
		if _, _, err := c.s.finish(c.kind, live); err != nil {
			refuse(w, err)
			return
		}
	}
	send(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}
