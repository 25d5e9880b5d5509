// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"

	"github.com/chromedp/chromedp"
)

// Screenshot returns what is seen in the window, as a PNG of at most 256 colors, which
// is a third of the size of one with all of them.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	return p.reduced(ask(p, "screenshot", chromedp.CaptureScreenshot()))
}

// FullScreenshot is a Screenshot of the whole page, as far down as it goes.
func (p *Page) FullScreenshot() []byte {
	p.t.Helper()
	return p.reduced(ask(p, "screenshot", chromedp.FullScreenshot(100)))
}

func (p *Page) reduced(raw []byte) []byte {
	p.t.Helper()
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		p.t.Fatal(err)
	}
	var out bytes.Buffer
	to := png.Encoder{CompressionLevel: png.BestCompression}
	if err := to.Encode(&out, reduce(full)); err != nil {
		p.t.Fatal(err)
	}
	return out.Bytes()
}

// reduce gives a picture the 256 colors that it has most of, and every other color the
// nearest of them: a page has few, and shades of them along its letters.
func reduce(full image.Image) *image.Paletted {
	count := map[color.RGBA]int{}
	rgba := image.NewRGBA(full.Bounds())
	draw.Draw(rgba, full.Bounds(), full, full.Bounds().Min, draw.Src)
	for i := 0; i < len(rgba.Pix); i += 4 {
		count[color.RGBA{rgba.Pix[i], rgba.Pix[i+1], rgba.Pix[i+2], 255}]++
	}

	most := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var colors color.Palette
	for _, c := range most[:min(len(most), 256)] {
		colors = append(colors, c)
	}

	index := map[color.RGBA]uint8{}
	for c := range count {
		index[c] = uint8(colors.Index(c))
	}
	small := image.NewPaletted(rgba.Bounds(), colors)
	for i := range small.Pix {
		small.Pix[i] = index[color.RGBA{rgba.Pix[4*i], rgba.Pix[4*i+1], rgba.Pix[4*i+2], 255}]
	}
	return small
}
