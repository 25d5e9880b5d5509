// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// toJSON decodes a document and refuses keys that are set twice. A key that a merge
// ("<<: *base") brings along and the document then sets is no such key, as for kubectl
// and kustomize, but the strict parser takes it for one.
func (p part) toJSON() ([]byte, error) {
	raw, err := yaml.YAMLToJSONStrict(p.text)
	if err == nil || !bytes.Contains(p.text, []byte("<<")) || !strings.Contains(err.Error(), "already set in map") {
		return raw, err
	}

	merged, wrong := yaml.YAMLToJSON(p.text) // bounds the aliases, too
	if wrong != nil {
		return nil, wrong
	}

	n := p.node()
	if n == nil {
		return nil, err
	}
	if faults := mergeFaults(n); len(faults) > 0 {
		return nil, fmt.Errorf("yaml: unmarshal errors:\n  %s", strings.Join(faults, "\n  "))
	}

	return merged, nil
}

// mergeFaults are the keys that are set twice in one mapping, and those that stand
// before a merge which has them too: kubectl takes the merge's value there, kustomize
// the other.
func mergeFaults(n *yamlv3.Node) (faults []string) {
	if n.Kind == yamlv3.MappingNode {
		set := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if isMerge(key) {
				for name := range keysOf(n.Content[i+1]) {
					if set[name] {
						faults = append(faults, fmt.Sprintf("line %d: key %q is set before the merge that has it too; put << first", key.Line, name))
					}
				}
				continue
			}
			if set[key.Value] {
				faults = append(faults, fmt.Sprintf("line %d: key %q already set in map", key.Line, key.Value))
			}
			set[key.Value] = true
		}
	}

	for _, c := range n.Content {
		faults = append(faults, mergeFaults(c)...)
	}
	return faults
}

func isMerge(key *yamlv3.Node) bool { return key.Kind == yamlv3.ScalarNode && key.Tag == "!!merge" }

// keysOf are the keys that a merge of n brings along: n is a mapping, an alias of one,
// or a list of them.
func keysOf(n *yamlv3.Node) map[string]bool {
	keys, seen := map[string]bool{}, map[*yamlv3.Node]bool{}
	var add func(n *yamlv3.Node)
	add = func(n *yamlv3.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		switch n.Kind {
		case yamlv3.AliasNode:
			add(n.Alias)
		case yamlv3.SequenceNode:
			for _, item := range n.Content {
				add(item)
			}
		case yamlv3.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if isMerge(n.Content[i]) {
					add(n.Content[i+1])
				} else {
					keys[n.Content[i].Value] = true
				}
			}
		}
	}

	add(n)
	return keys
}
