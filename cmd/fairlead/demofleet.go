// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/examples"
)

// demoFleet is the example fleet on any number of clusters.
type demoFleet struct {
	clusters []string // in the order of its releases
}

// demoRegions are where its clusters are, in turns.
var demoRegions = []struct{ prefix, name string }{{"eu", "europe"}, {"us", "america"}, {"ap", "asia"}}

// exampleClusters are how many the example fleet has.
const exampleClusters = 3

// newDemoFleet returns one of n clusters: eu-1, us-1, ap-1, eu-2 and so on.
func newDemoFleet(n int) demoFleet {
	var f demoFleet
	for i := range n {
		f.clusters = append(f.clusters, fmt.Sprintf("%s-%d", demoRegions[i%len(demoRegions)].prefix, i/len(demoRegions)+1))
	}
	return f
}

// in returns the clusters of the region with a prefix.
func (f demoFleet) in(prefix string) (names []string) {
	for _, name := range f.clusters {
		if strings.HasPrefix(name, prefix+"-") {
			names = append(names, name)
		}
	}
	return names
}

// but returns the clusters that are none of some.
func (f demoFleet) but(some ...string) (names []string) {
	for _, name := range f.clusters {
		if !slices.Contains(some, name) {
			names = append(names, name)
		}
	}
	return names
}

// replicas are those of its application: 6 on a cluster in Europe, 3 on another.
func (f demoFleet) replicas() int { return 3 * (len(f.clusters) + len(f.in("eu"))) }

// files are those of the example fleet, with a Cluster for each cluster, waves by region,
// and replicas in proportion.
func (f demoFleet) files() map[string][]byte {
	files := map[string][]byte{}
	example := examples.Quickstart()
	_ = fs.WalkDir(example, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files[path], err = fs.ReadFile(example, path)
		}
		return err // an embedded file can always be read
	})
	if len(f.clusters) == exampleClusters {
		return files
	}

	var waves bytes.Buffer
	waves.WriteString("  waves:\n  - {name: first, clusters: [eu-1]}\n")
	for _, region := range demoRegions {
		names := f.in(region.prefix)
		like := files["clusters/"+region.prefix+"-1.yaml"]
		for _, name := range names {
			files["clusters/"+name+".yaml"] = replace(like, "name: "+region.prefix+"-1", "name: "+name)
		}
		if names = slices.DeleteFunc(names, func(name string) bool { return name == "eu-1" }); len(names) > 0 {
			fmt.Fprintf(&waves, "  - {name: %s, clusters: [%s]}\n", region.name, strings.Join(names, ", "))
		}
	}
	files["fairlead.yaml"] = append(slices.Clone(files["fairlead.yaml"]), waves.Bytes()...)
	files[webPolicy] = replace(files[webPolicy], "clusterNames: [eu-1]", "clusterNames: ["+strings.Join(f.in("eu"), ", ")+"]")
	files[webPolicy] = replace(files[webPolicy], "clusterNames: [us-1, ap-1]", "clusterNames: ["+strings.Join(append(f.in("us"), f.in("ap")...), ", ")+"]")
	files["apps/web/deployment.yaml"] = replace(files["apps/web/deployment.yaml"], "replicas: 12", fmt.Sprint("replicas: ", f.replicas()))
	return files
}

// web2 edits the fleet to run web 2.0, and to hold it on some clusters.
func (f demoFleet) web2(held ...string) map[string][]byte {
	files := f.files()
	const image = "apps/web/kustomization.yaml"
	return map[string][]byte{
		image:     replace(files[image], `newTag: "1.0"`, `newTag: "2.0"`),
		webPolicy: suspend(files[webPolicy], held...),
	}
}

// group is the clusters that have the same line.
type group struct {
	title string
	line  []string
	names []string
}

// mostAlone is how many clusters have a line each.
const mostAlone = 12

// alike returns the lines of the clusters; of many, those that are alike as one.
func (f demoFleet) alike(lines [][]string) (groups []group) {
	for i, name := range f.clusters {
		at := slices.IndexFunc(groups, func(g group) bool { return len(f.clusters) > mostAlone && slices.Equal(g.line, lines[i]) })
		if at < 0 {
			groups = append(groups, group{line: lines[i]})
			at = len(groups) - 1
		}
		groups[at].names = append(groups[at].names, name)
	}

	for i, g := range groups {
		groups[i].title = g.names[0]
		if n := len(g.names) - 1; n > 0 {
			groups[i].title = fmt.Sprintf("%s and %d more", g.names[0], n)
		}
	}
	return groups
}

func replace(content []byte, old, with string) []byte {
	return []byte(strings.ReplaceAll(string(content), old, with))
}

// suspend adds a suspension to the end of a policy's spec.
func suspend(policy []byte, clusters ...string) []byte {
	return append(slices.Clone(policy), fmt.Sprintf("  suspension:\n    dispatchingOnClusters:\n      clusterNames: [%s]\n", strings.Join(clusters, ", "))...)
}
