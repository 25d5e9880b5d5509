#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds kube-apiserver, kube-controller-manager, kubectl and etcd from Go modules
# into hack/kube/bin, once: a second call with the same module versions does
# nothing. About 7 minutes on 2 cores the first time.
set -euo pipefail
cd "$(dirname "$0")"

want=$(cat go.mod go.sum build.sh | sha256sum | cut -d' ' -f1)
if [ "$(cat bin/.built 2>/dev/null)" = "$want" ]; then
	exit 0
fi

echo "building the API server binaries for the tests (once, about 7 minutes on 2 cores)" >&2
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v*.}
minor=${minor%%.*}
stamp=k8s.io/component-base/version
mkdir -p bin
export CGO_ENABLED=0
go build -trimpath -buildvcs=false \
	-ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor" \
	-o bin/ k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager \
	k8s.io/kubernetes/cmd/kubectl
go build -trimpath -buildvcs=false -ldflags "-s -w" -o bin/etcd go.etcd.io/etcd/server/v3
echo "$want" >bin/.built
