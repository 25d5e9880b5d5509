// SPDX-License-Identifier: Apache-2.0

package main

import "flag"

var updateScripts = flag.Bool("update", false, "write what the scripts compare into them")
