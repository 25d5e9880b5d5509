// SPDX-License-Identifier: Apache-2.0

package decrypt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file decrypts a file that SOPS has encrypted, and reports whether it is one. Which
// format it has is seen from the file; JSON that holds one value is a file of any kind,
// unless its name says that it is JSON.
func (k *Keys) file(name string, content []byte) (plain []byte, is bool, err error) {
	switch {
	case bytes.Contains(content, []byte("sops_mac=ENC[AES256_GCM,")):
		plain, err = k.dotenv(content)
	case bytes.Contains(content, []byte(`"mac": "ENC[AES256_GCM,`)), bytes.Contains(content, []byte(`"mac":"ENC[AES256_GCM,`)):
		plain, err = k.json(name, content)
	case bytes.Contains(content, []byte("\n[sops]\n")) && bytes.Contains(content, []byte("ENC[AES256_GCM,")):
		err = errors.New("INI files are not decrypted: encrypt it as a binary file (sops encrypt --input-type binary)")
	case bytes.Contains(content, []byte("mac: ENC[AES256_GCM,")):
		plain, err = k.yaml(content)
	default:
		return nil, false, nil
	}
	return plain, true, err
}

func (k *Keys) json(name string, content []byte) ([]byte, error) {
	var document map[string]any
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, errors.New("it is not valid JSON")
	}
	o, err := k.open(document["sops"])
	if err != nil {
		return nil, err
	}

	delete(document, "sops")
	data, single := document["data"].(string)
	if single && len(document) == 1 && path.Ext(name) != ".json" {
		opened, err := o.value(data, []string{"data"})
		return []byte(fmt.Sprint(opened)), err
	}
	opened, err := o.walk(document, nil)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	err = encoder.Encode(opened)
	return out.Bytes(), err
}

// yaml keeps the order and the comments of a file.
func (k *Keys) yaml(content []byte) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(4)
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return out.Bytes(), encoder.Close()
		case err != nil:
			return nil, errors.New("it is not valid YAML")
		}
		if err := k.yamlDocument(&document); err != nil {
			return nil, err
		}
		if err := encoder.Encode(&document); err != nil {
			return nil, errors.New("it cannot be written as YAML")
		}
	}
}

func (k *Keys) yamlDocument(document *yaml.Node) error {
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return errors.New("it is not a YAML mapping")
	}
	root := document.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "sops" {
			continue
		}
		var field any
		if err := root.Content[i+1].Decode(&field); err != nil {
			return errors.New("the field sops cannot be read")
		}
		o, err := k.open(field)
		if err != nil {
			return err
		}
		root.Content = append(root.Content[:i:i], root.Content[i+2:]...)
		return o.node(root, nil)
	}
	return errors.New("a document in it has no field sops")
}

// node is walk of a YAML node.
func (o *opener) node(n *yaml.Node, at []string) error {
	for _, comment := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		if strings.Contains(*comment, "ENC[AES256_GCM,") {
			*comment = ""
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := o.node(n.Content[i], nil); err != nil { // for its comments
				return err
			}
			if err := o.node(n.Content[i+1], append(at[:len(at):len(at)], n.Content[i].Value)); err != nil {
				return err
			}
		}
		return nil
	case yaml.SequenceNode:
		for _, child := range n.Content {
			if err := o.node(child, at); err != nil {
				return err
			}
		}
		return nil
	case yaml.AliasNode:
		return errors.New("it has an alias, which SOPS does not encrypt")
	}
	if at == nil || n.Tag == "!!null" {
		return nil
	}

	var value any
	if err := n.Decode(&value); err != nil {
		return fmt.Errorf("%s cannot be read", strings.Join(at, "."))
	}
	opened, err := o.walk(value, at)
	if err != nil || opened == value {
		return err
	}
	if err := n.Encode(opened); err != nil {
		return fmt.Errorf("%s cannot be written", strings.Join(at, "."))
	}
	return nil
}

// dotenv decrypts lines of NAME=VALUE. What SOPS notes stands in such lines, too.
func (k *Keys) dotenv(content []byte) ([]byte, error) {
	noted := map[string]any{}
	var lines []string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, "=")
		if field, ok := strings.CutPrefix(name, "sops_"); ok {
			note(noted, strings.Split(field, "__"), strings.ReplaceAll(value, `\n`, "\n"))
			continue
		}
		if !strings.HasPrefix(line, "#ENC[") {
			lines = append(lines, line)
		}
	}
	o, err := k.open(assembled(noted))
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	for _, line := range lines {
		name, value, ok := strings.Cut(line, "=")
		if ok && !strings.HasPrefix(line, "#") {
			opened, err := o.walk(value, []string{name})
			if err != nil {
				return nil, err
			}
			line = name + "=" + strings.ReplaceAll(fmt.Sprint(opened), "\n", `\n`)
		}
		out.WriteString(line + "\n")
	}
	return out.Bytes(), nil
}

// note puts a value where a flat name says: age__list_0__map_enc is age[0].enc.
func note(into map[string]any, name []string, value string) {
	key := strings.TrimPrefix(name[0], "map_")
	if len(name) == 1 {
		into[key] = value
		if n, err := strconv.Atoi(value); err == nil && key == "shamir_threshold" {
			into[key] = n
		}
		return
	}
	below, ok := into[key].(map[string]any)
	if !ok {
		below = map[string]any{}
		into[key] = below
	}
	note(below, name[1:], value)
}

// assembled makes lists of the maps whose keys are list_0, list_1 and so on.
func assembled(value any) any {
	in, ok := value.(map[string]any)
	if !ok {
		return value
	}
	var list []any
	for i := 0; ; i++ {
		child, ok := in["list_"+strconv.Itoa(i)]
		if !ok {
			break
		}
		list = append(list, assembled(child))
	}
	if list != nil {
		return list
	}
	out := map[string]any{}
	for key, child := range in {
		out[key] = assembled(child)
	}
	return out
}
