// SPDX-License-Identifier: Apache-2.0

package web

// Head is the commit that the pages show.
func (s *Server) Head() string {
	if l := s.line.Load(); l != nil {
		return l.head
	}
	return ""
}

// Nudge has the server look whether the branch has moved.
func (s *Server) Nudge() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Waiting counts the requests whose turn it is or that wait for theirs.
func (s *Server) Waiting() int { return len(s.travel.queue.waiting) }

// Version is what pages at the head say that they show.
func (s *Server) Version() string { return s.version(s.line.Load()) }

// Forget forgets what was made of the line to be shown.
func (s *Server) Forget() {
	s.views.clear()
	s.sent.clear()
}
