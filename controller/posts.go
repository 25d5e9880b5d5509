// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// posts sends events to --events-addr, one after the other and beside everything else:
// Flux's recorder tries each of them for half a minute while nobody answers there, and no
// Fleet waits for that.
type posts struct {
	to    record.EventRecorder
	log   logr.Logger
	queue chan post
}

// post is an event to send.
type post struct {
	about                 runtime.Object
	metadata              map[string]string
	kind, reason, message string
}

// postsKept is how many events wait for an address that does not answer.
const postsKept = 1000

func newPosts(to record.EventRecorder, log logr.Logger) *posts {
	return &posts{to: to, log: log, queue: make(chan post, postsKept)}
}

// add has an event sent. When too many wait it is dropped, and the log says so.
func (p *posts) add(e post) {
	select {
	case p.queue <- e:
	default:
		p.log.Info("event not sent: too many wait for --events-addr", "reason", e.reason, "message", e.message)
	}
}

// Start sends events until the context ends, and does not wait for the one in flight.
func (p *posts) Start(ctx context.Context) error {
	go func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case e := <-p.queue:
				p.to.AnnotatedEventf(e.about, e.metadata, e.kind, e.reason, "%s", e.message)
			}
		}
	}()

	<-ctx.Done()
	return nil
}
