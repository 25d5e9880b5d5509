#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds golangci-lint from its Go module into hack/lint/bin, once: a second
# call with the same module versions and the same Go does nothing. The Go
# counts because a linter cannot read packages of a newer one than built it.
set -euo pipefail
cd "$(dirname "$0")"

want=$(cat go.mod go.sum build.sh <(go env GOVERSION) | sha256sum | cut -d' ' -f1)
if [ "$(cat bin/.built 2>/dev/null)" = "$want" ]; then
	exit 0
fi

echo "building golangci-lint (once, about 2 minutes on 2 cores)" >&2
mkdir -p bin
export CGO_ENABLED=0
go build -trimpath -buildvcs=false -ldflags "-s -w" -o bin/ tool
echo "$want" >bin/.built
