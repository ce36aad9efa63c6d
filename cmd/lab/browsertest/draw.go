package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/jackc/pgx/v5"
)

const maxHeight = 1500

type shot struct {
	name, path string
	look
	open string // parts to unfold
	at   string // part at the top; empty: the page's
}

var (
	desk        = look{width: 1280, language: "zh-CN"}
	deskEnglish = look{width: 1280, language: "en"}
	deskDark    = look{width: 1280, language: "zh-CN", dark: true}
	phone       = look{width: 375, language: "zh-CN", phone: true}
	phoneDark   = look{width: 375, language: "en", phone: true, dark: true}
)

func emptyShots() ([]shot, error) {
	return []shot{{name: "empty-overview", path: "/", look: desk}, {name: "empty-sessions", path: "/sessions", look: desk}}, nil
}

type paths struct {
	Session, Attempt, Longest, Private, Memory, Person string
}

func pathsOf(ctx context.Context, address string) (p paths, err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	p.Session, p.Longest = "/sessions/"+url.PathEscape(string(release.key())), "/sessions/"+url.PathEscape(string(longest.key()))
	var private string
	var attempt, memory int64
	err = errors.Join(
		conn.QueryRow(ctx, "SELECT id FROM compaction_log WHERE session_key = $1 AND outcome = 'committed' ORDER BY id DESC LIMIT 1", release.key()).Scan(&attempt),
		conn.QueryRow(ctx, "SELECT id FROM memories WHERE content LIKE $1 ORDER BY id LIMIT 1", "%"+orderNumber+"%").Scan(&memory),
		conn.QueryRow(ctx, "SELECT session_key FROM dingtalk_sessions WHERE conversation_type = '1' LIMIT 1").Scan(&private),
	)
	p.Attempt = "/compactions/" + url.PathEscape(string(release.key())) + "/" + fmt.Sprint(attempt)
	p.Memory, p.Person, p.Private = "/memories/"+fmt.Sprint(memory), "/people/u-alex", "/sessions/"+url.PathEscape(private)
	return p, err
}

func shots(ctx context.Context, address string) ([]shot, error) {
	p, err := pathsOf(ctx, address)
	return []shot{
		{name: "overview", path: "/", look: desk},
		{name: "sessions", path: "/sessions", look: desk},
		{name: "session", path: p.Session, look: desk, open: ".cut details"},
		{name: "long", path: p.Longest, look: desk},
		{name: "compactions", path: "/compactions", look: desk},
		{name: "attempt", path: p.Attempt, look: desk},
		{name: "memories", path: "/memories", look: desk},
		{name: "memory", path: p.Memory, look: desk, open: ".act"},
		{name: "person", path: p.Person, look: desk, open: ".act"},
		{name: "schedules", path: "/schedules", look: desk},
		{name: "schedules-phone", path: "/schedules", look: phoneDark},
		{name: "usage", path: "/usage", look: desk},
		{name: "attention", path: "/attention", look: desk},
		{name: "restarts", path: "/restarts", look: desk},
		{name: "settings", path: "/settings", look: desk},
		{name: "audit", path: "/audit", look: desk},
		{name: "people", path: "/people", look: desk},
		{name: "search", path: p.Session + "/search?q=%E5%8F%91%E5%B8%83", look: desk},
		{name: "privacy", path: "/privacy", look: desk},
		{name: "retention", path: "/retention?days=1", look: desk},
		{name: "privacy-phone", path: "/privacy", look: phone},
		{name: "error", path: "/nowhere", look: deskEnglish},
		{name: "overview-en", path: "/", look: deskEnglish},
		{name: "session-en", path: p.Session, look: deskEnglish},
		{name: "overview-dark", path: "/", look: deskDark},
		{name: "session-dark", path: p.Session, look: deskDark, open: ".cut details"},
		{name: "attempt-dark", path: p.Attempt, look: deskDark},
		{name: "overview-phone", path: "/", look: phone},
		{name: "sessions-phone", path: "/sessions", look: phone},
		{name: "session-phone", path: p.Session, look: phone, open: ".cut details"},
		{name: "compactions-phone", path: "/compactions", look: phoneDark},
		{name: "memories-phone", path: "/memories", look: phoneDark},
		{name: "audit-phone", path: "/audit", look: phone},
		{name: "cut", path: p.Session, look: desk, open: ".cut details", at: ".cut"},
		{name: "cut-phone", path: p.Session, look: phoneDark, open: ".cut details", at: ".cut"},
		{name: "long-phone", path: p.Longest, look: phone},
		{name: "attempt-phone", path: p.Attempt, look: phoneDark},
	}, err
}

func (s *stage) drawOn(ctx context.Context, chromium context.Context, address, dir string, list func() ([]shot, error)) (err error) {
	all, err := list()
	if err != nil {
		return err
	}
	r, err := s.startReplica(ctx, "pay-bot-0", address, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tab, stop := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	defer stop()
	if err := logIn(tab, r.console); err != nil {
		return err
	}
	for _, one := range all {
		picture, err := one.draw(tab, r.console)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, one.name+".png"), picture, 0o644)
		}
		if err != nil {
			return fmt.Errorf("drawing %s: %w", one.name, err)
		}
	}
	return nil
}

func logIn(tab context.Context, console string) error {
	_, err := chromedp.RunResponse(tab, chromedp.Navigate(console+"/login"))
	if err == nil {
		_, err = chromedp.RunResponse(tab, chromedp.SendKeys(chromedp.CSS("#token"), adminToken+kb.Enter))
	}
	return err
}

func (s shot) draw(tab context.Context, console string) ([]byte, error) {
	if err := s.look.apply(tab); err != nil {
		return nil, err
	}
	if _, err := chromedp.RunResponse(tab, chromedp.Navigate(console+s.path)); err != nil {
		return nil, err
	}
	if s.open != "" {
		if err := chromedp.Do(tab, chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelectorAll(%q).forEach(d => d.open = true)", s.open))); err != nil {
			return nil, err
		}
	}
	if s.at != "" {
		if err := chromedp.Do(tab, chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).scrollIntoView()", s.at))); err != nil {
			return nil, err
		}
	}
	area, err := chromedp.Run(tab, chromedp.Evaluate[[]float64]("[scrollY, document.documentElement.scrollHeight]"))
	if err != nil {
		return nil, err
	}
	whole := true
	result, err := chromedp.Call(tab, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &whole,
		Clip:                  &page.Viewport{X: 0, Y: area[0], Width: float64(s.width), Height: min(area[1]-area[0], maxHeight), Scale: 1},
	})
	if err != nil {
		return nil, err
	}
	return smaller(result.Data)
}

const colors = 96

// smaller keeps the most frequent colors: text needs few, and the picture is a third of its size.
func smaller(picture []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	count := map[color.Color]int{}
	area := img.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[img.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	few := image.NewPaletted(area, frequent[:min(len(frequent), colors)])
	draw.Draw(few, area, img, area.Min, draw.Src)
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, few)
	return b.Bytes(), err
}
