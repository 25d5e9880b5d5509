// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/fairlead/fairlead/web/stream"
)

// publish tells the browsers what is shown now, if that is something else than before.
func (s *Server) publish() {
	l := s.line.Load()
	if l == nil {
		return
	}
	version := s.version(l)
	if version == s.published {
		return
	}
	s.published = version
	o := s.views.at(l.head, l.state, l.log, s.membersAt(l.head))
	parts := map[string]string{"head": version}
	for _, g := range o.groups {
		parts[g.partID()] = g.digest()
	}
	s.hub.Publish(stream.Snapshot{Version: version, Parts: parts})
}

// version names what is shown at the head: the commit, and what members have.
func (s *Server) version(l *line) string {
	version := l.head[:12]
	if m := s.membersAt(l.head); m != nil {
		version += "-" + m.Version()
	}
	return version
}

// digest is one of what the matrix shows of a group.
func (g *group) digest() string {
	g.digestOnce.Do(func() { g.digested = g.sum() })
	return g.digested
}

func (g *group) sum() string {
	sum := sha256.New()
	for _, r := range g.rows {
		fmt.Fprintf(sum, "%s\x00%s\x00", r.id.Key(), r.policy.Key())
		r.tally.write(sum)
	}
	for i := range g.waves {
		g.waves[i].write(sum)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

func (t *tally) write(sum hash.Hash) {
	_ = binary.Write(sum, binary.LittleEndian, t) // a hash takes everything
}
