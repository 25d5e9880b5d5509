// SPDX-License-Identifier: Apache-2.0

package web

import (
	"html/template"
	"net/http"
)

// Listed is one fleet in the list of a door that has several.
type Listed struct {
	Path  string // of its page
	Title string
	State string // in one word, such as Ready
	Text  string // the state as a sentence
}

// Index is the list of the fleets of a door, which serves the files of AssetHandler at the
// root as well.
func Index(fleets func() []Listed) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		err := indexPage.Execute(w, struct {
			Style  string
			Fleets []Listed
		}{links{}.Asset("page.css"), fleets()})
		if err != nil {
			return // whoever asked has left
		}
	})
}

// AssetHandler serves the style sheet and the scripts at /assets/{name}.
func AssetHandler() http.Handler { return http.HandlerFunc(serveAsset) }

var indexPage = template.Must(template.New("index").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fleets</title>
<link rel="stylesheet" href="{{.Style}}">
</head>
<body>
<header id="head"><div class="bar"><a class="brand" href="/">fairlead</a></div></header>
<main id="main" tabindex="-1">
<h1>Fleets</h1>
{{if .Fleets}}<table>
<thead><tr><th scope="col">Fleet</th><th scope="col">Ready</th><th scope="col">Status</th></tr></thead>
<tbody>{{range .Fleets}}
<tr><th scope="row"><a href="{{.Path}}">{{.Title}}</a></th><td>{{.State}}</td><td>{{.Text}}</td></tr>{{end}}
</tbody>
</table>{{else}}<p>There are no Fleets here yet: <code>fairlead create fleet</code> makes one.</p>{{end}}
</main>
</body>
</html>
`))
