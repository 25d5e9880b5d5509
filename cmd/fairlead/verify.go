// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/credentials"
	"github.com/fairlead/fairlead/reconcile"
)

// verifyFlags say which commits must be signed, and by whom.
type verifyFlags struct{ mode, signers string }

func (f *verifyFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.mode, "verify", "", "commits that must be signed by a key of --signers: head, or each-commit of the branch (default: none)")
	flags.StringVar(&f.signers, "signers", "", "directory of public keys: OpenPGP in *.asc, SSH in *.sshpub")
}

func (f *verifyFlags) read() (v reconcile.Verify, err error) {
	switch f.mode {
	case "":
		if f.signers != "" {
			return v, usagef("--signers is for --verify, which is not given")
		}
		return v, nil
	case "head":
		v.Mode = reconcile.VerifyHead
	case "each-commit":
		v.Mode = reconcile.VerifyEachCommit
	default:
		return v, usagef("--verify %s: must be head or each-commit", f.mode)
	}
	if f.signers == "" {
		return v, usagef("--verify requires --signers DIR")
	}

	files, err := credentials.ReadDir(os.DirFS(f.signers))
	if err != nil {
		return v, fmt.Errorf("--signers %s: %w", f.signers, err)
	}
	v.Signers, err = credentials.Signers(files, "--signers "+f.signers)
	return v, err
}
