// SPDX-License-Identifier: Apache-2.0

// Package report holds the results of the look commands as values, and prints them.
//
// [Why] is the reason why a template is on a cluster or not, [History] the changes of a
// template on its clusters, [Events] what happened commit by commit, and [Matrix] the
// state of every template on every cluster; what a change does is in package plan. Each
// is built from states, and from a given now if time matters: nothing here reads a
// clock, a flag or a terminal. Their JSON is a contract: within a major of FormatVersion
// fields are only added. Text is a function beside the values.
package report
