# docker build -t ebb .
#
# Both base images can be replaced by local ones: --build-arg BUILD_IMAGE=..., --build-arg RUN_IMAGE=... The first needs Go
# and CA certificates in Debian's place, the second nothing.
ARG BUILD_IMAGE=golang:1.26-bookworm
ARG RUN_IMAGE=scratch

FROM ${BUILD_IMAGE} AS build
ARG GOPROXY
ARG VERSION=dev
WORKDIR /src
# The modules change more rarely than the code, so they get a layer of their own.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/bot ./cmd/bot

FROM ${RUN_IMAGE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/bot /bot
COPY config.jsonc /etc/ebb/config.jsonc
# By number: an empty image has no names, and Kubernetes can tell that it is not root.
USER 65532:65532
EXPOSE 8080
# A stop takes about 30 s, at most 40 (config: shutdown), so give it more than Docker's 10: docker run --stop-timeout 60.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=60s CMD ["/bot", "healthcheck", "--config", "/etc/ebb/config.jsonc"]
ENTRYPOINT ["/bot"]
CMD ["serve", "--config", "/etc/ebb/config.jsonc"]
