// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/memory"
)

// maxPack limits what a server can make us store in one fetch.
const maxPack = 8 << 30

// A pack of at most so many objects and bytes is stored object by object, as git does:
// with a pack for every commit, a look-up would open as many files as commits were
// fetched.
const (
	maxUnpacked      = 1000
	maxUnpackedBytes = 4 << 20
)

// errThin is the error for a pack that lacks what we have, and is too large to be
// completed here.
var errThin = errors.New("too large for a thin pack")

// download fetches the wanted objects and everything they need.
func (r *Repo) download(ctx context.Context, s session, advertised *packp.AdvRefs, wants []plumbing.Hash, have mirrored) error {
	haves := r.haves(have, advertised)
	_, again := s.(*renewingSession) // a session of https can ask twice
	err := r.downloadPack(ctx, s, advertised, wants, haves, again && len(haves) > 0 && r.of == nil)
	if errors.Is(err, errThin) {
		err = r.downloadPack(ctx, s, advertised, wants, haves, false)
	}
	return err
}

// downloadPack is download in one request. A thin pack has differences from what we have,
// so that a line in a directory of 10,000 files is not the whole directory.
func (r *Repo) downloadPack(ctx context.Context, s session, advertised *packp.AdvRefs, wants, haves []plumbing.Hash, thin bool) error {
	req := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	if advertised.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return err
		}
	}
	if thin {
		if err := req.Capabilities.Set(capability.ThinPack); err != nil {
			return err
		}
	}

	req.Wants, req.Haves = wants, haves
	response, err := s.UploadPack(ctx, req)
	if err != nil {
		return err
	}
	defer response.Close()

	most := cmp.Or(r.most, maxPack)
	pack := &packReader{ctx: ctx, from: demuxed(req, response), left: most, most: most}
	if r.of == nil && len(haves) > 0 {
		err = r.store(pack, wants, thin)
	} else {
		err = r.storePack(pack) // what comes first is packed well
	}
	if err != nil && !errors.Is(err, errThin) {
		err = fmt.Errorf("pack: %w", err)
	}
	return err
}

// store stores a pack of what is new.
func (r *Repo) store(pack io.Reader, wants []plumbing.Hash, thin bool) error {
	start, few, err := beginning(pack)
	switch {
	case err != nil:
		return err
	case few:
		return r.unpack(start, wants)
	case thin:
		return errThin
	}
	return r.storePack(io.MultiReader(bytes.NewReader(start), pack))
}

// storePack stores a pack as it is.
func (r *Repo) storePack(pack io.Reader) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := packfile.WritePackfileToObjectStorage(r.stores[0], pack); err != nil {
		r.removeTempPacks()
		return err
	}
	return r.reopen()
}

// packHeader is the size of a pack's header, whose last four bytes are the number of
// objects.
const packHeader = 12

// beginning reads the beginning of a pack, or all of it if it is to be unpacked.
func beginning(pack io.Reader) (b []byte, few bool, err error) {
	b = make([]byte, packHeader)
	if _, err := io.ReadFull(pack, b); err != nil {
		return nil, false, err
	}
	if binary.BigEndian.Uint32(b[packHeader-4:]) > maxUnpacked {
		return b, false, nil
	}

	rest, err := io.ReadAll(io.LimitReader(pack, maxUnpackedBytes))
	return append(b, rest...), len(rest) < maxUnpackedBytes, err
}

// unpack stores the objects of a whole pack. What is wanted comes last: until it is
// there, the next fetch asks for all of it again.
func (r *Repo) unpack(pack []byte, wants []plumbing.Hash) error {
	end := len(pack) - sha1.Size
	if end < packHeader || sha1.Sum(pack[:end]) != [sha1.Size]byte(pack[end:]) {
		return errors.New("it is damaged, its checksum is another")
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	in := &unpacked{memory.NewStorage(), r}
	p, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(pack)), in)
	if err == nil {
		_, err = p.Parse()
	}
	if err != nil {
		return err
	}

	for _, last := range []bool{false, true} {
		for h, o := range in.Objects {
			if slices.Contains(wants, h) != last {
				continue
			}
			if _, err := r.stores[0].SetEncodedObject(o); err != nil {
				r.removeTempPacks()
				return err
			}
		}
	}
	return nil
}

// unpacked are the objects of a pack, in memory, and behind them those of a repository,
// from which they may differ only in part.
type unpacked struct {
	*memory.Storage
	r *Repo
}

// EncodedObject implements storer.EncodedObjectStorer.
func (u *unpacked) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := u.Storage.EncodedObject(t, h)
	for _, s := range u.r.stores {
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			break
		}
		o, err = s.EncodedObject(t, h)
	}
	return o, err
}

// removeTempPacks removes what an interrupted download left behind.
func (r *Repo) removeTempPacks() {
	left, _ := filepath.Glob(filepath.Join(r.common, "objects", "pack", "tmp_*"))
	for _, name := range left {
		_ = os.Remove(name) // git would collect this garbage, too
	}
}

// packReader reads a pack up to a size limit, and until its context ends.
type packReader struct {
	ctx  context.Context
	from io.Reader
	left int64
	most int64
}

func (c *packReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if c.left <= 0 {
		return 0, fmt.Errorf("pack is %w, at most %d bytes are fetched", ErrTooLarge, c.most)
	}

	n, err := c.from.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// maxHaves limits how many commits of each ref are offered to the server. A
// branch that was rewritten further back is sent in full.
const maxHaves = 64

// haves lists what the server need not send.
func (r *Repo) haves(have mirrored, advertised *packp.AdvRefs) []plumbing.Hash {
	theirs := map[plumbing.Hash]bool{}
	for _, h := range advertised.References {
		theirs[h] = true
	}

	seen := map[plumbing.Hash]bool{}
	var hashes []plumbing.Hash
	for _, h := range have.refs {
		for range maxHaves {
			if seen[h] {
				break
			}

			seen[h] = true
			c, err := r.commit(h)
			if err != nil {
				break // a tag object, or not a commit at all
			}

			hashes = append(hashes, h)
			if theirs[h] || len(c.parents) == 0 {
				break
			}

			h = c.parents[0]
		}
	}

	plumbing.HashesSort(hashes)
	return hashes
}
