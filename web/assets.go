// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/fairlead/fairlead/web/draw"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file of ours, under a name that changes with its content.
type asset struct {
	content     []byte
	contentType string
}

// assets are by that name, and assetNames have it by the file's own.
var assets, assetNames = readAssets()

func readAssets() (map[string]asset, map[string]string) {
	files, names := map[string]asset{}, map[string]string{}
	add := func(file string, content []byte) {
		sum := sha256.Sum256(content)
		ext := path.Ext(file)
		name := strings.TrimSuffix(file, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
		files[name] = asset{content, mime.TypeByExtension(ext)}
		names[file] = name
	}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // they are embedded
	}
	for _, e := range entries {
		content, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		add(e.Name(), content)
	}
	add("draw.css", []byte(draw.Style))
	return files, names
}

// assetName is the name under which a file is served.
func assetName(file string) string { return assetNames[file] }

// serveAsset serves a file of ours, which never changes under its name.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets[r.PathValue("name")]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	(&request{Request: r, writer: w}).sendForever(a)
}
