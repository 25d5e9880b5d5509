// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// MadeRecord is what was found out when a content was made, on disk: it saves rendering
// it again. Older records have none.
type MadeRecord struct {
	Rules    []RuleRecord `json:"rules,omitempty"`
	Conflict string       `json:"conflict,omitempty"`
}

// RuleRecord is a rule on disk: its override, and what it does.
type RuleRecord struct {
	Override string        `json:"override"`
	Digest   object.Digest `json:"digest"`
}

// made is c as it was made; nil where that is not known.
func (c *Content) made() *MadeRecord {
	if c.Template == nil {
		return nil
	}
	r := &MadeRecord{Conflict: c.Conflict}
	for _, rule := range c.Rules {
		r.Rules = append(r.Rules, RuleRecord{rule.Override.Key(), rule.Digest()})
	}
	return r
}

// rules are those of a record in a snapshot. It reports false where one is not there: then
// another snapshot made the content.
func (r *MadeRecord) rules(in *fleet.Snapshot) (rules []*fleet.Rule, ok bool) {
	for _, was := range r.Rules {
		o := in.Overrides.At(was.Override)
		if o == nil {
			return nil, false
		}
		i := slices.IndexFunc(o.Rules, func(rule *fleet.Rule) bool { return rule.Digest() == was.Digest })
		if i < 0 {
			return nil, false
		}
		rules = append(rules, o.Rules[i])
	}
	return rules, true
}
