// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/object"
)

// A capability is what a Member can do besides. Ask for one with As, which finds
// it through wrappers.

// Observer is a Member that can be asked for more than dispatch needs. Its
// errors are those of a Member.
type Observer interface {
	// Ready reports whether the member takes work. An error says that it does not
	// answer.
	Ready(ctx context.Context) (bool, error)
	// Read reads a whole object; nil when it is absent.
	Read(ctx context.Context, ref Ref) (map[string]any, error)
}

// Watcher is a Member that tells when its objects change.
type Watcher interface {
	// Watch tells of the objects of a kind that bear our label: of all that are
	// there, then that these were all, then of each that changes, until the
	// time is over or the member ends it. It asks for metadata alone.
	Watch(ctx context.Context, gvk schema.GroupVersionKind, lasting time.Duration, tell func(WatchEvent)) error
}

// WatchEvent is what a watch tells of an object.
type WatchEvent struct {
	// All says that every object that is there as of Version was told; the rest
	// is empty.
	All bool
	// Gone says that it was deleted, or does not bear our label any more.
	Gone bool
	Found
	Fields  Fields
	Version uint64
	// Set are the fields that are ours, as managedFields has them.
	Set json.RawMessage
	// By is who wrote it last, other than us.
	By string
}

// Relister is a Member that tells once what a watch begins with.
type Relister interface {
	Watcher
	Relist(ctx context.Context, gvk schema.GroupVersionKind, tell func(WatchEvent)) error
}

// BatchMember is a Member that takes what it is told as one: nothing of it has
// reached the cluster before Flush says so, and then all of it has.
type BatchMember interface {
	// Begin forgets what was not flushed, and says where the cluster stands.
	// With ask it looks; else it may rely on what it knows, for Flush will see.
	Begin(ctx context.Context, ask bool) (Position, error)
	// Holds is the UID of an object as of Begin, "" when it is not there.
	Holds(ctx context.Context, ref Ref) (types.UID, error)
	// Flush is all or nothing. The error Conflict, here and elsewhere, says that
	// somebody else was faster, and that another Begin is due.
	Flush(ctx context.Context, of Source) (Flushed, error)
}

// Position is where a cluster stands as a whole.
type Position struct {
	Where string    // "branch fairlead/eu-1 of https://example.com/deploy"
	At    types.UID // its last commit; "" when there is none
}

// Flushed is what a Flush did.
type Flushed struct {
	Position
	Changes  int      // 0: everything was so already
	Warnings []string // what somebody should know
}

// Source is a commit of the fleet.
type Source struct {
	Commit, Subject string
	When            time.Time
}

// Identified is a Member that is a cluster with an API of its own, and so has a
// namespace kube-system whose UID tells it from others.
type Identified interface{ HasIdentity() }

// NamespaceCreator is a Member that creates an object's namespace itself when it
// is told to apply the object.
type NamespaceCreator interface{ CreatesNamespaces() }

// Publisher is a Member as files. Published is how many replicas the file of an object
// has, as Member.Replicas is of a live object; false without such a number.
type Publisher interface {
	Published(ctx context.Context, ref Ref) (int64, bool, error)
}

// Fenced is a Member that writes nothing but what is part of a commit, while it may: several
// processes reconcile the fleet, and each writes to its share of the clusters. For is the
// Member whose writes are part of a commit. The wrappers around a Fenced are lost by it, so
// there are none.
type Fenced interface {
	For(commit string) Member
	VersionDeleter
}

// VersionDeleter is a Member that deletes an object only as it was seen: an object of
// another version is the error Conflict.
type VersionDeleter interface {
	DeleteVersion(ctx context.Context, ref Ref, uid types.UID, version string, of object.Marker) error
}

// Closer is a Member that keeps connections. Close gives them back; the Member is not used
// any more.
type Closer interface{ Close() }

// ReadOnly is a Member whose writes go nowhere. Nothing is recorded of it.
type ReadOnly interface{ IsReadOnly() }
