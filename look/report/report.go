// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/fairlead/fairlead/object"
)

// APIVersion is that of every report.
const APIVersion = "fairlead.dev/v1"

// Commit is a commit by its hash.
type Commit struct {
	Commit string `json:"commit"`
}

// Object is an object that a report is about.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Group      string `json:"group,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (o Object) id() object.ID {
	return object.ID{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// Text reads "Deployment shop/web".
func (o Object) Text() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}
