package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// openChromium starts CHROME, or the machine's Chromium, headless.
func openChromium(ctx context.Context) (chromium context.Context, stop func(), err error) {
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.DisableGPU)
	// A page's scripts run for a moment: to compile them to machine code takes more CPU than it saves.
	o = append(o, chromedp.Flag("js-flags", "--no-opt,--no-maglev"))
	if path := cmp.Or(os.Getenv("CHROME"), findChromium(ctx)); path != "" {
		o = append(o, chromedp.ExecPath(path))
	}
	if os.Geteuid() == 0 {
		o = append(o, chromedp.NoSandbox) // Chromium refuses to run as root with its sandbox
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(ctx, o...)
	chromium, stopBrowser := chromedp.NewContext(allocator)
	stop = func() { stopBrowser(); stopAllocator() }
	if err := chromedp.Do(chromium); err != nil {
		stop()
		return nil, nil, fmt.Errorf("starting Chromium, which .ci/deps.sh tests installs, or another one by CHROME: %w", err)
	}
	return chromium, stop, nil
}

// findChromium tries --version: Ubuntu's chromium-browser without its snap is a stub that fails.
func findChromium(ctx context.Context) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if exec.CommandContext(ctx, name, "--version").Run() == nil {
			return name
		}
	}
	return ""
}

type look struct {
	width    int64
	phone    bool
	dark     bool
	language string // as in Accept-Language
	noScript bool
}

func (l look) apply(ctx context.Context) error {
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	if err := command(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: 860, DeviceScaleFactor: 1, Mobile: l.phone}); err != nil {
		return err
	}
	if err := command(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		return err
	}
	if err := command(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScript}); err != nil {
		return err
	}
	if err := command(ctx, network.Enable, network.EnableParams{}); err != nil {
		return err
	}
	return command(ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": l.language}})
}

func command[P any](ctx context.Context, c cdp.Command[P, cdp.Empty], params P) error {
	_, err := chromedp.Call(ctx, c, params)
	return err
}
