#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds Flux's source-controller and notification-controller from Go modules into
# hack/flux/bin, once: a second call with the same module versions does nothing.
# Their CRDs are copied from the modules. About 8 minutes on 2 cores the first time.
set -euo pipefail
cd "$(dirname "$0")"

want=$(cat go.mod go.sum build.sh | sha256sum | cut -d' ' -f1)
if [ "$(cat bin/.built 2>/dev/null)" = "$want" ]; then
	exit 0
fi

echo "building Flux's controllers for the tests (once, about 8 minutes on 2 cores)" >&2
mkdir -p bin/crds
export CGO_ENABLED=0
for controller in source-controller notification-controller; do
	module=github.com/fluxcd/$controller
	go build -trimpath -buildvcs=false -ldflags "-s -w" -o bin/ $module
	for crd in "$(go list -m -f '{{.Dir}}' $module)"/config/crd/bases/*.yaml; do
		install -m 644 "$crd" bin/crds/
	done
done
echo "$want" >bin/.built
