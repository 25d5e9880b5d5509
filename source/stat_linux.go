// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"syscall"
	"time"
)

func statOf(info os.FileInfo) fileStat {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileStat{}
	}
	return fileStat{time.Unix(s.Ctim.Unix()), uint32(s.Dev), uint32(s.Ino), s.Uid, s.Gid}
}
