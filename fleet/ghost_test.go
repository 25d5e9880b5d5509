// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/object"
)

// WithGhosts are all kinds and one more. This line is what it takes to register
// it; the rest of this file is what a new kind has to say.
func WithGhosts() Kinds { return append(Known(), kindOf(ghosts{})) }

// Ghost is a document of a kind that only tests have.
type Ghost struct {
	Name, House string
	Origin      Origin
}

type ghostDocument struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		House string `json:"house"`
		Loud  bool   `json:"loud"`
	} `json:"spec"`
}

type ghosts struct{}

func (ghosts) Names() Names {
	return Names{schema.GroupVersion{Group: "ghosts.test", Version: "v1"}, []string{"Ghost"}}
}

func (ghosts) ID(g *Ghost) object.ID {
	return object.ID{Group: "ghosts.test", Kind: "Ghost", Name: g.Name}
}

func (ghosts) Key(g *Ghost) string    { return g.Name }
func (ghosts) Origin(g *Ghost) Origin { return g.Origin }
func (ghosts) Equal(a, b *Ghost) bool { return *a == *b }

func (ghosts) Default(doc *ghostDocument, _ *check) {
	if doc.Spec.House == "" {
		doc.Spec.House = "attic"
	}
}

func (ghosts) Validate(doc *ghostDocument, c *check) *Ghost {
	if doc.Spec.Loud {
		c.at("spec.loud", "spec.loud: ghosts are quiet")
	}
	return &Ghost{doc.Name, doc.Spec.House, c.origin}
}
