// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// maxEvent is how long the metadata of one object may be: a member is not
// trusted with our memory.
const maxEvent = 4 << 20

// watchEvent is a line of the stream.
type watchEvent struct {
	Type   string `json:"type"`
	Object struct {
		metav1.Status
		Metadata struct {
			partialMeta
			ManagedFields []manager `json:"managedFields"`
		} `json:"metadata"`
	} `json:"object"`
}

func (p *apiMember) Watch(ctx context.Context, gvk schema.GroupVersionKind, lasting time.Duration, tell func(member.WatchEvent)) error {
	e, err := p.kinds.find(ctx, gvk)
	if err != nil {
		return err
	}
	// The server ends the watch; if it does not, we do.
	ctx, cancel := context.WithTimeout(ctx, lasting+requestTimeout)
	defer cancel()
	path := e.path(gvk.GroupVersion(), "", "")
	query := url.Values{
		"watch":               {"true"},
		"labelSelector":       {object.LabelManaged + "=true"},
		"timeoutSeconds":      {strconv.Itoa(int(lasting.Seconds()))},
		"allowWatchBookmarks": {"true"},
	}
	initial := url.Values{"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "resourceVersion": {""}}
	for key, value := range query {
		initial[key] = value
	}
	err = p.stream(ctx, gvk, path, initial, tell)
	if !errors.Is(err, member.Invalid) {
		return err
	}
	// A server that does not know how to begin a watch with all objects.
	version, err := p.tellAll(ctx, gvk, path, tell)
	if err != nil {
		return err
	}
	query.Set("resourceVersion", version)
	return p.stream(ctx, gvk, path, query, tell)
}

// Relist tells of the objects of a kind that bear our label, and that these were
// all.
func (p *apiMember) Relist(ctx context.Context, gvk schema.GroupVersionKind, tell func(member.WatchEvent)) error {
	e, err := p.kinds.find(ctx, gvk)
	if err != nil {
		return err
	}
	_, err = p.tellAll(ctx, gvk, e.path(gvk.GroupVersion(), "", ""), tell)
	return err
}

// tellAll lists what there is, page by page, and returns the version of the
// list.
func (p *apiMember) tellAll(ctx context.Context, gvk schema.GroupVersionKind, path string, tell func(member.WatchEvent)) (version string, err error) {
	for at := (pager{kind: gvk.Kind}); ; {
		page, err := p.managedPage(ctx, gvk, path, at.ask(url.Values{"labelSelector": {object.LabelManaged + "=true"}}))
		if at.shorter(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			m := &page.Items[i].Metadata
			tell(eventOf(gvk, &m.partialMeta, m.ManagedFields))
		}
		if err := at.turnTo(page.Metadata.Continue, len(page.Items)); err != nil {
			return "", err
		}
		if at.next == "" {
			// The version is that of the first page, and of all.
			tell(member.WatchEvent{All: true, Version: versionOf(page.Metadata.ResourceVersion)})
			return page.Metadata.ResourceVersion, nil
		}
	}
}

// managedList is a page of objects, and who owns which of their fields.
type managedList struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			partialMeta
			ManagedFields []manager `json:"managedFields"`
		} `json:"metadata"`
	} `json:"items"`
}

func (p *apiMember) managedPage(ctx context.Context, gvk schema.GroupVersionKind, path string, query url.Values) (*managedList, error) {
	a, err := p.send(ctx, request{method: http.MethodGet, path: path, query: query, accept: asMetadataList, many: true})
	if err != nil {
		return nil, err
	}
	defer a.done()
	if _, err := p.decode(member.Ref{GroupVersionKind: gvk}, a); err != nil {
		return nil, err
	}
	var page managedList
	if json.Unmarshal(a.body, &page) != nil || page.Metadata.ResourceVersion == "" {
		return nil, notKubernetes(a.status)
	}
	return &page, nil
}

func eventOf(gvk schema.GroupVersionKind, m *partialMeta, managers []manager) member.WatchEvent {
	set := ownSet(managers)
	return member.WatchEvent{Found: m.found(gvk.GroupKind()), Set: set, Fields: fieldsOf(set), Version: versionOf(m.ResourceVersion), By: lastWriter(managers)}
}

// stream reads one watch to its end.
func (p *apiMember) stream(ctx context.Context, gvk schema.GroupVersionKind, path string, query url.Values, tell func(member.WatchEvent)) error {
	resp, err := p.open(ctx, path, query)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, done, err := p.read(ctx, resp, maxObject)
		if err != nil {
			return err
		}
		defer done()
		return apiError(resp.StatusCode, resp.Header, body, false)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		e, err := p.event(ctx, lines.Bytes())
		if err != nil {
			return err
		}
		s := eventOf(gvk, &e.Object.Metadata.partialMeta, e.Object.Metadata.ManagedFields)
		switch e.Type {
		case "ADDED", "MODIFIED":
			tell(s)
		case "DELETED":
			s.Gone = true
			tell(s)
		case "BOOKMARK":
			if s.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
				tell(member.WatchEvent{All: true, Version: s.Version})
			}
		case "ERROR":
			return &member.Error{Reason: reasonOf(int(e.Object.Code), e.Object.Status), Err: fmt.Errorf("the watch ended: %s", e.Object.Message)}
		default:
			return notKubernetes(resp.StatusCode)
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		preempted := (*member.Preempted)(nil)
		if body, ok := resp.Body.(ending); ok && errors.As(context.Cause(body.ctx), &preempted) {
			return preempted
		}
		return unreachable(err)
	}
	return nil
}

// event decodes a line.
func (p *apiMember) event(ctx context.Context, line []byte) (*watchEvent, error) {
	nested, err := weigh(line)
	if err != nil {
		return nil, &member.Error{Reason: member.Unreachable, Err: err}
	}
	if len(line) > smallAnswer || nested > smallNested {
		done, err := p.large.take(ctx)
		if err != nil {
			return nil, unreachable(err)
		}
		defer done()
	}
	var e watchEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, notKubernetes(http.StatusOK)
	}
	return &e, nil
}

// open begins a stream. Its beginning has to come in time, its end has not.
func (p *apiMember) open(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	u := *p.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = query.Encode()
	ctx, cancel := context.WithCancelCause(ctx)
	impatience := time.AfterFunc(requestTimeout, func() { cancel(context.DeadlineExceeded) })
	defer impatience.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, &member.Error{Reason: member.Invalid, Err: err}
	}
	req.Header.Set("Accept", asMetadata)
	resp, err := p.client.Do(req)
	if err != nil {
		err = errors.Join(context.Cause(ctx), err)
		cancel(nil)
		return nil, unreachable(err)
	}
	resp.Body = ending{resp.Body, ctx, cancel, p.all.watching(func() { cancel(&member.Preempted{Files: mostFiles()}) })}
	return resp, nil
}

// ending lets a stream's context go with the stream.
type ending struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	over   func()
}

func (e ending) Close() error {
	e.over()
	e.cancel(nil)
	return e.ReadCloser.Close()
}
