// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package source

import "os"

func statOf(os.FileInfo) fileStat { return fileStat{} }
