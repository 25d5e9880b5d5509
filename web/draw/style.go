// SPDX-License-Identifier: Apache-2.0

package draw

import _ "embed" // the style sheet

// Style has the rules for what this package draws, as a part of a page's style
// sheet.
//
//go:embed draw.css
var Style string
