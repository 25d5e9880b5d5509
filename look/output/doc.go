// SPDX-License-Identifier: Apache-2.0

// Package output gives what a command has found the form that its user asks for: a
// table that fits a screen, JSON, YAML, names, or a template over the objects. It is
// given the size and the colours of the screen, and reads neither terminal nor
// environment.
package output
