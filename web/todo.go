// SPDX-License-Identifier: Apache-2.0

package web

import "net/http"

func (s *Server) rulerPage(q *request) error { return s.noPage(q) }
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "not yet", http.StatusNotFound)
}
