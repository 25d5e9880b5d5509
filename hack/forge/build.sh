#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds Gitea from Go modules into hack/forge/bin, once: a second call with the
# same module versions does nothing. About 5 minutes on 2 cores the first time.
# There is no frontend in it: the tests use its API and git over HTTP.
set -euo pipefail
cd "$(dirname "$0")"

want=$(cat go.mod go.sum build.sh | sha256sum | cut -d' ' -f1)
if [ "$(cat bin/.built 2>/dev/null)" = "$want" ]; then
	exit 0
fi

echo "building Gitea for the tests (once, about 5 minutes on 2 cores)" >&2
version=$(go list -m -f '{{.Version}}' code.gitea.io/gitea)
mkdir -p bin
CGO_ENABLED=1 go build -trimpath -buildvcs=false -tags 'sqlite sqlite_unlock_notify timetzdata' \
	-ldflags "-s -w -X main.Version=${version#v}" -o bin/gitea code.gitea.io/gitea
# Its templates and locales are files of the module: they are read from there.
go list -m -f '{{.Dir}}' code.gitea.io/gitea >bin/static
echo "$want" >bin/.built
