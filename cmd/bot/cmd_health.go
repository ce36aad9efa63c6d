package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"ebb/bot/config"
)

// healthCmd is for images without a shell.
type healthCmd struct {
	Config string `short:"c" help:"Take the address from admin.listen of this config file."`
	Addr   string `default:"127.0.0.1:8080" help:"host:port as in admin.listen (default: ${default})."`
}

// Run requests /healthz and fails unless the status is 200.
func (c healthCmd) Run(ctx context.Context, app *App) error {
	if c.Config != "" {
		cfg, err := config.Load(c.Config, app.Getenv, config.NeedNothing)
		if err != nil {
			return err
		}
		if c.Addr = cfg.Admin.Listen; c.Addr == "" {
			return usageError{fmt.Errorf("%s: admin.listen is empty: there is no server to ask", c.Config)}
		}
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return usageError{fmt.Errorf("--addr: %w", err)}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // a wildcard address is reached locally
	}
	url := "http://" + net.JoinHostPort(host, port) + "/healthz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usageError{fmt.Errorf("--addr: %w", err)}
	}
	resp, err := (&http.Client{Timeout: 3 * time.Second}).Do(req)
	if err != nil {
		return fmt.Errorf("asking for health: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s for health: status %d", url, resp.StatusCode)
	}
	return nil
}
