// Command browsertest draws the pages of the console into docs/console, from conversations that a gateway compacted.
// Run it at the root of the module. Its tests use the same pages in Chromium, as an administrator does.
package main

import (
	"context"
	"errors"
	"log"
	"os/signal"
	"syscall"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := drawAll(ctx, "docs/console"); err != nil {
		stop()
		log.Fatal(err)
	}
}

func drawAll(ctx context.Context, dir string) (err error) {
	s, err := openStage(ctx)
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err != nil {
		return err
	}
	chromium, stop, err := openChromium(ctx)
	if err != nil {
		return err
	}
	defer stop()
	empty, err := s.copyDatabase(ctx, "empty")
	if err == nil {
		err = s.drawOn(ctx, chromium, empty, dir, emptyShots)
	}
	if err == nil {
		err = s.seed(ctx)
	}
	if err != nil {
		return err
	}
	url := s.postgres.URL()
	return s.drawOn(ctx, chromium, url, dir, func() ([]shot, error) { return shots(ctx, url) })
}
