# SPDX-License-Identifier: Apache-2.0
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /fairlead ./cmd/fairlead

FROM gcr.io/distroless/static:nonroot
COPY --from=build /fairlead /usr/local/bin/fairlead
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/fairlead"]
CMD ["controller"]
