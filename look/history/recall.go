// SPDX-License-Identifier: Apache-2.0

package history

import (
	"os"
	"path/filepath"
)

// unitsFile has what rendering made of the last tree that a command has read, without
// what is in it. Units are reused that read the same now, whatever the commit.
const unitsFile = "units"

// worthRecalling is of how many units a command must have rendered one for them to be
// kept.
const worthRecalling = 10

// recall has a history reuse the kept units. A file that cannot be read is removed.
func (c *Cache) recall(h *History) {
	if !c.Recalls || h.accepted.build != nil || h.last.build != nil {
		return
	}
	file := filepath.Join(c.dir, unitsFile)
	raw, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if h.renderer.Recall(raw) != nil {
		os.Remove(file)
	}
}

// keepUnits keeps the units of a history's last tree, if a part of them was rendered for
// it. Errors are ignored: the next command renders again.
func (c *Cache) keepUnits(h *History) {
	build := h.last.build
	if build == nil {
		build = h.accepted.build
	}
	if !c.Recalls || build == nil || h.Renders-c.rendered < build.Snapshot.Units.Len()/worthRecalling {
		return
	}
	if raw, err := build.Encode(); err == nil {
		c.write(filepath.Join(c.dir, unitsFile), raw)
		c.rendered = h.Renders
	}
}
