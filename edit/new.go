// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// New is the text of a manifest that holds objects, a document each. Fields
// stand in their order, and the entries of a map in that of Kubernetes.
func New(objects ...any) ([]byte, error) {
	var out bytes.Buffer
	e := yamlv3.NewEncoder(&out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	for _, o := range objects {
		n, err := node(o)
		if err != nil {
			return nil, err
		}
		if err := e.Encode(n); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return out.Bytes(), readsAs(out.Bytes(), objects)
}

// node is a value as it is written.
func node(v any) (*yamlv3.Node, error) {
	switch v := v.(type) {
	case Fields:
		n := &yamlv3.Node{Kind: yamlv3.MappingNode}
		for _, f := range v {
			if err := add(n, f.Name, f.Value); err != nil {
				return nil, err
			}
		}
		return n, nil
	case map[string]any:
		n := &yamlv3.Node{Kind: yamlv3.MappingNode}
		for _, key := range inOrder(v) {
			if err := add(n, key, v[key]); err != nil {
				return nil, err
			}
		}
		return n, nil
	case []any:
		n := &yamlv3.Node{Kind: yamlv3.SequenceNode}
		for _, child := range v {
			c, err := node(child)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		return n, nil
	}
	n := &yamlv3.Node{}
	if err := n.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return n, nil
}

func add(n *yamlv3.Node, key string, v any) error {
	k, err := node(key)
	if err != nil {
		return err
	}
	c, err := node(v)
	if err != nil {
		return err
	}
	n.Content = append(n.Content, k, c)
	return nil
}

// first are the keys that people write first, and look for there.
var first = []string{"apiVersion", "kind", "metadata", "name", "namespace"}

// inOrder are the keys of a map: those that say what it is, then the others
// sorted.
func inOrder(m map[string]any) []string {
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}

func rank(key string) int {
	if i := slices.Index(first, key); i >= 0 {
		return i
	}
	return len(first)
}

// readsAs checks that the readers of the fleet take the text for what it was
// made of.
func readsAs(text []byte, objects []any) error {
	documents := strings.Split("\n"+string(text), "\n---\n")
	if len(documents) != len(objects) {
		return fmt.Errorf("%d objects would be read as %d documents", len(objects), len(documents))
	}
	for i, document := range documents {
		var got, want any
		if err := yaml.Unmarshal([]byte(document), &got); err != nil {
			return fmt.Errorf("what was written cannot be read: %w", err)
		}
		b, err := json.Marshal(plain(objects[i]))
		if err == nil {
			err = json.Unmarshal(b, &want)
		}
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("document %d would be read as something else than it is", i+1)
		}
	}
	return nil
}
