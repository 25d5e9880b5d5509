// SPDX-License-Identifier: Apache-2.0

// Package browser gives a real browser to tests: the Chromium of this machine, driven
// through its debugging protocol.
//
//	func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }
//
//	func TestPage(t *testing.T) {
//		p := browser.Open(t, browser.Window{Width: 390, Height: 844, Dark: true})
//		p.Goto(server.URL)
//		p.Press("j", "o")
//		p.Wait(`details[open]`)
//	}
//
// There is one Chromium in a test binary, and each page has cookies, storage and a
// cache of its own. A test fails on what the console calls an error, on a script that
// throws, and on whatever a Content-Security-Policy forbids. No name is resolved but
// that of this machine.
//
// Without Chromium a test is skipped and says so; where CI is set, it fails.
//
// The directory axe has axe-core 4.14.1 as it is published on npm, which looks for what
// keeps people from using a page. It is under the Mozilla Public License 2.0, and no
// part of the program.
package browser
