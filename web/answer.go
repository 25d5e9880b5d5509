// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/fairlead/fairlead/printable"
)

// answer writes a page. Only what is new to the client is sent.
func (q *request) answer(code int, name, title string, body any) {
	var buffer bytes.Buffer
	err := templates[name].ExecuteTemplate(printable.NewWriter(&buffer), q.layout(), q.page(code, name, title, body))
	if err != nil {
		q.server.options.Log("GET " + q.URL.Path + ": " + err.Error())
		http.Error(q.writer, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	if key := q.key(); code == http.StatusOK && key != "" && buffer.Len() <= mostSent {
		q.server.sent.put(key, buffer.Bytes())
	}
	q.send(code, htmlType, buffer.Bytes())
}

const htmlType = "text/html; charset=utf-8"

const (
	// maxSent is how many pages are kept to be sent again, and mostSent how large one may be.
	maxSent  = 64
	mostSent = 256 << 10
)

// key names what a request is shown: when something changes, all browsers ask for the same
// at once. It is "" for what else than the line decides.
func (q *request) key() string {
	s := q.server
	if q.line == nil || strings.Contains(q.URL.Path, "/plan") {
		return ""
	}
	at := s.options.Now().Unix() / 60 // ages count minutes
	return fmt.Sprintf("%s %s %s %d %p %p %p", s.version(q.line), q.layout(), q.URL.RequestURI(), at, s.trouble.Load(), s.unfetched.Load(), s.unasked.Load())
}

// layout is the template that is executed: the whole page, or what script replaces in it.
func (q *request) layout() string {
	if q.Header.Get("HX-Request") == "true" {
		return "part"
	}
	return "whole"
}

// leastGzip is the size below which compression is not worth it.
const leastGzip = 1 << 10

// writers are idle gzip writers, which are large.
var writers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

// send writes an answer, or that it is what the client has already.
func (q *request) send(code int, contentType string, body []byte) {
	h := q.writer.Header()
	h.Set("Cache-Control", "no-cache")
	if code == http.StatusOK {
		sum := sha256.Sum256(body)
		tag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
		h.Set("ETag", tag)
		if matches(q.Header.Get("If-None-Match"), tag) {
			q.writer.WriteHeader(http.StatusNotModified)
			return
		}
	} else {
		h.Set("Cache-Control", "no-store")
	}
	q.write(code, contentType, body)
}

// write writes a body, compressed if the client takes that.
func (q *request) write(code int, contentType string, body []byte) {
	h := q.writer.Header()
	h.Set("Content-Type", contentType)
	h.Set("Vary", "Accept-Encoding, HX-Request")
	if len(body) >= leastGzip && takesGzip(q.Request) {
		var compressed bytes.Buffer
		w := writers.Get().(*gzip.Writer)
		w.Reset(&compressed)
		_, _ = w.Write(body) // to memory
		_ = w.Close()
		writers.Put(w)
		h.Set("Content-Encoding", "gzip")
		body = compressed.Bytes()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.writer.WriteHeader(code)
	if q.Method != http.MethodHead {
		_, _ = q.writer.Write(body) // the client may have gone
	}
}

// sendForever is send for what never changes.
func (q *request) sendForever(a asset) {
	h := q.writer.Header()
	if matches(q.Header.Get("If-None-Match"), `"1"`) {
		q.writer.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("ETag", `"1"`) // the name says which content
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	q.write(http.StatusOK, a.contentType, a.content)
}

// takesGzip reports whether a client takes answers with gzip.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, parameters, _ := strings.Cut(strings.TrimSpace(part), ";")
		quality := strings.ReplaceAll(parameters, " ", "")
		if strings.EqualFold(name, "gzip") && quality != "q=0" && quality != "q=0.0" {
			return true
		}
	}
	return false
}

// matches reports whether If-None-Match has a tag.
func matches(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimSpace(part); part == tag || part == "*" {
			return true
		}
	}
	return false
}
