// SPDX-License-Identifier: Apache-2.0

package yamledit

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

// New encodes objects as a manifest, one document each. Fields keep their
// order, and map keys have the usual order of Kubernetes.
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

	return out.Bytes(), checkReadBack(out.Bytes(), objects)
}

// node is a value as a YAML node.
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
		for _, key := range orderedKeys(v) {
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

// firstKeys are the keys that come first by convention.
var firstKeys = []string{"apiVersion", "kind", "metadata", "name", "namespace"}

// orderedKeys are the keys of a map: firstKeys, then the others sorted.
func orderedKeys(m map[string]any) []string {
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}

func rank(key string) int {
	if i := slices.Index(firstKeys, key); i >= 0 {
		return i
	}
	return len(firstKeys)
}

// checkReadBack checks that the text is read back as the objects it was made
// of.
func checkReadBack(text []byte, objects []any) error {
	documents := strings.Split("\n"+string(text), "\n---\n")
	if len(documents) != len(objects) {
		return fmt.Errorf("%d objects would be read as %d documents", len(objects), len(documents))
	}

	for i, document := range documents {
		var got, want any
		if err := yaml.Unmarshal([]byte(document), &got); err != nil {
			return fmt.Errorf("the result cannot be read back: %w", err)
		}

		b, err := json.Marshal(plain(objects[i]))
		if err == nil {
			err = json.Unmarshal(b, &want)
		}
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("document %d would be read back differently", i+1)
		}
	}

	return nil
}
