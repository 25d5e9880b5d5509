// SPDX-License-Identifier: Apache-2.0

package web

import "net/http"

type planned struct{}

const maxPlans = 8

func (s *Server) rulerPage(q *request) error       { return s.noPage(q) }
func (s *Server) clustersPage(q *request) error    { return s.noPage(q) }
func (s *Server) clusterPage(q *request) error     { return s.noPage(q) }
func (s *Server) templatePage(q *request) error    { return s.noPage(q) }
func (s *Server) policiesPage(q *request) error    { return s.noPage(q) }
func (s *Server) policyPage(q *request) error      { return s.noPage(q) }
func (s *Server) holdsPage(q *request) error       { return s.noPage(q) }
func (s *Server) planPage(q *request) error        { return s.noPage(q) }
func (s *Server) pullRequestPage(q *request) error { return s.noPage(q) }
func (s *Server) timelinePage(q *request) error    { return s.noPage(q) }
func (s *Server) searchPage(q *request) error      { return s.noPage(q) }
func (s *Server) apiHandler() http.Handler         { return s.handler(s.noPage) }
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "not yet", http.StatusNotFound)
}
