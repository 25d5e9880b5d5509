// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill is the software bill of materials of a binary, as CycloneDX: the modules that the
// compiler has noted in it, and the compiler.
func (r *release) bill(binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("modules of %s: %w", binary, err)
	}

	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.when.Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: "fairlead", Type: cdx.ComponentTypeApplication, Name: "fairlead", Version: r.version, PackageURL: "pkg:golang/" + info.Main.Path + "@" + r.version},
	}
	components := []cdx.Component{{BOMRef: "go", Type: cdx.ComponentTypeLibrary, Name: "stdlib", Version: info.GoVersion, PackageURL: "pkg:golang/stdlib@" + info.GoVersion}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		url := "pkg:golang/" + module.Path + "@" + module.Version
		components = append(components, cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: url})
	}
	bom.Components = &components

	var out bytes.Buffer
	err = cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}
