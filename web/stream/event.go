// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/json"
	"slices"

	"github.com/fairlead/fairlead/printable"
)

// Message is the data of an event.
type Message struct {
	Version string   `json:"version"`
	IDs     []string `json:"ids,omitempty"` // of the parts that changed, sorted
}

// event is a Message of a kind.
type event struct {
	kind, version string
	ids           []string
}

// message is an event as it is sent, the same bytes for every client.
type message []byte

// heartbeat is a comment, which browsers drop.
var heartbeat = message(":\n\n")

// eventOf returns the message for a change.
func eventOf(moved change) message {
	if moved.ids == nil {
		return event{kind: "resync", version: moved.to}.written()
	}
	slices.Sort(moved.ids)
	return event{kind: "changed", version: moved.to, ids: moved.ids}.written()
}

// written returns an event as the stream has it. JSON has no line breaks, and the version
// is a piece of a line.
func (e event) written() message {
	data, err := json.Marshal(Message{Version: e.version, IDs: e.ids})
	if err != nil {
		panic(err) // of texts, which JSON can always say
	}
	return message("event: " + e.kind + "\nid: " + printable.Line(e.version) + "\ndata: " + string(data) + "\n\n")
}
