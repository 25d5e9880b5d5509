// SPDX-License-Identifier: Apache-2.0

// Package decrypt decrypts what SOPS has encrypted, with age and OpenPGP keys that it is
// given and with nothing else:
//
//	keys, err := decrypt.Load(secret)        // data of a Secret: *.agekey, *.asc
//	plain, err := keys.Manifest(manifest)    // the same if nothing in it is encrypted
//
// It reads no file, no environment and no keyring, runs no gpg and asks no service: a
// document that names a key of AWS, GCP, Azure, Vault or anybody else is decrypted by one of
// the given keys, or not at all. SOPS's own packages link the clients of all those, which
// would be 28 MiB of the program and 21 MiB of memory; so this reads the format itself, and
// leaves the cryptography to age, OpenPGP and the standard library.
//
// Errors name the field and for whom a document is encrypted, which are both readable in
// git, and never quote a value.
package decrypt
