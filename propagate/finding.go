// SPDX-License-Identifier: Apache-2.0

package propagate

// Level says how much a finding matters.
type Level string

// An error must be dealt with, a caution be looked at, a notice be known.
const (
	LevelError   Level = "error"
	LevelCaution Level = "caution"
	LevelNotice  Level = "notice"
)

// Finding is something that a reviewer should know and that refuses nothing.
type Finding struct {
	Code     string
	Level    Level
	Message  string
	Object   ID
	Clusters []string
	Policy   PolicyRef
	Origin   Origin
	// Trailer is the commit message line that releases a held commit.
	Trailer string
}
