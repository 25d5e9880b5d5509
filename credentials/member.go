// SPDX-License-Identifier: Apache-2.0

package credentials

import "slices"

// The keys of a Secret for clusters: those of Flux and Cluster API, and those of Karmada.
const (
	keyValue     = "value"
	keyValueYAML = "value.yaml"
	keyToken     = "token"
	keyCABundle  = "caBundle"
)

// HasKubeconfig reports whether a Secret has the layout of Flux and Cluster API, rather
// than Karmada's.
func HasKubeconfig(values map[string][]byte) bool {
	return data{values: values}.hasAny(keyValue, keyValueYAML)
}

// Kubeconfig is the kubeconfig under a key; of the key "" it is the one under value, or
// else value.yaml. push.ParseContexts or push.ParseCluster reads it.
func Kubeconfig(values map[string][]byte, name, key string) ([]byte, error) {
	d, keys := data{name, values}, []string{key}
	if key == "" {
		keys = []string{keyValue, keyValueYAML}
	}
	if i := slices.IndexFunc(keys, func(key string) bool { return d.hasAny(key) }); i < 0 {
		return nil, d.errorf("it has no key %s", keys[0])
	}

	kubeconfig := d.first(keys...)
	if kubeconfig == nil {
		return nil, d.errorf("%s is empty", keys[0])
	}
	return kubeconfig, nil
}

// Karmada is the token of a cluster, and the PEM authority that its API server is trusted
// by, if the Secret has one. They belong to the address in the Cluster document.
func Karmada(values map[string][]byte, name string) (token string, ca []byte, err error) {
	d := data{name, values}
	if token = d.text(keyToken); token == "" {
		return "", nil, d.errorf("it has neither a kubeconfig (value) nor a token")
	}

	ca = d.first(keyCABundle)
	return token, ca, d.checkCA(keyCABundle, ca)
}

// Token is the token that a webhook or a forge's API takes.
func Token(values map[string][]byte, name string) (string, error) {
	d := data{name, values}
	token := d.text(keyToken)
	if token == "" {
		return "", d.errorf("it has no token")
	}
	return token, nil
}
