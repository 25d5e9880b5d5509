// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/fairlead/fairlead/propagate/interpret"

// Health is how an object that was read from a member does, by its kind's
// script or rule (digest §9.3). The error says why it is unknown.
func (s *State) Health(object map[string]any) (Health, error) {
	script := s.index.interpreterOf(object, interpret.InterpretHealth)
	health, err := interpret.HealthOf(script.interpreter(), object)
	return health, script.wrap(err)
}

// StatusOf is what is to be known of the status of an object that was read
// from a member, nil when that is nothing (digest §9.1).
func (s *State) StatusOf(object map[string]any) (map[string]any, error) {
	script := s.index.interpreterOf(object, interpret.ReflectStatus)
	status, err := interpret.StatusOf(script.interpreter(), object)
	return status, script.wrap(err)
}

// Aggregate is a template with the status that its copies add up to (digest
// §9.4). A kind without a script or a rule stays as it is.
func (s *State) Aggregate(template map[string]any, items []interpret.Observed) (map[string]any, error) {
	script := s.index.interpreterOf(template, interpret.AggregateStatus)
	object, err := interpret.Aggregate(script.interpreter(), template, items)
	return object, script.wrap(err)
}

// interpreterOf is the script that answers for an object's kind, nil without.
func (ix *index) interpreterOf(object map[string]any, function string) *script {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return ix.scriptFor(apiVersion, kind, function)
}

// interpreter is what a script answers with, nil without one.
func (s *script) interpreter() interpret.Interpreter {
	if s == nil {
		return nil
	}
	return s.Interpreter
}
