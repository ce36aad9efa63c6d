package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ebb/bot/dingtalk/dingtalktest"
)

// patience bounds one step, on a busy machine.
const patience = time.Minute

// world is a seeded stage with a browser.
type world struct {
	*stage
	chromium context.Context
}

// openWorld starts PostgreSQL and Chromium, and seeds the database that all consoles copy.
func openWorld(t *testing.T) *world {
	t.Helper()
	s, err := openStage(t.Context())
	t.Cleanup(func() {
		if err := s.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	chromium, stop, err := openChromium(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return &world{s, chromium}
}

// tab is a browser tab of a person, on a console with a database of its own.
type tab struct {
	*replica
	look
	t        *testing.T
	ctx      context.Context
	database string
	paths    paths
	keys     bool // the person has no pointer
	axe      bool // each loaded page has no serious fault of accessibility
	clicks   int

	mu       sync.Mutex
	requests []string
}

// open copies the database, starts a gateway on it and opens a tab without cookies.
func (w *world) open(t *testing.T, l look) *tab {
	t.Helper()
	return w.openWith(t, l, nil)
}

// openWith is open for a console with logins by DingTalk.
func (w *world) openWith(t *testing.T, l look, login func(*dingtalktest.Server) map[string]any) *tab {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "_", "-", "_", "TestConsole/", "").Replace(t.Name()))
	b := &tab{t: t, look: l}
	var err error
	if b.database, err = w.copyDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if b.replica, err = w.startReplica(t.Context(), name, b.database, login); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.replica.close(); err != nil {
			t.Error(err)
		}
	})
	if b.paths, err = pathsOf(t.Context(), b.database); err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(w.chromium, chromedp.WithNewBrowserContext())
	b.ctx = ctx
	t.Cleanup(stop)
	err = chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.requests = append(b.requests, e.Request.URL)
		}
	})
	if err := errors.Join(err, l.apply(ctx)); err != nil {
		t.Fatal(err)
	}
	return b
}

// others returns the requests to other origins than the console's.
func (b *tab) others() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.requests {
		if !strings.HasPrefix(u, b.console+"/") {
			all = append(all, u)
		}
	}
	return all
}

// tables lists the tables that do not fit into a phone's window, and the cells without the name of their column, which a phone shows in
// place of the header.
const tables = `[...document.querySelectorAll('table')].flatMap(t => {
	const heads = [...t.querySelectorAll('thead th')].map(h => h.textContent), box = t.closest('.wide');
	return [...t.querySelectorAll('tbody td')].filter(d => heads.length && d.dataset.label !== heads[d.cellIndex]).map(d => 'not named: ' + d.outerHTML)
		.concat(innerWidth < 720 && box.scrollWidth > box.clientWidth ? ['wider than the window: ' + box.innerText.slice(0, 300)] : []);
})`

// load executes actions that lead to another page, and waits for it. No page is wider than its window.
func (b *tab) load(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	if _, err := chromedp.RunResponse(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v; the page is %s", what, err, b.text())
	}
	b.fits(what)
	if b.axe {
		b.checkThemes(what)
	}
}

// fits holds that the page is as wide as the device, and that no table has to be scrolled sideways.
func (b *tab) fits(what string) {
	b.t.Helper()
	// A phone's window grows with a page that is too wide, so that its own width says nothing.
	if wide := evaluate[int64](b, "Math.max(document.documentElement.scrollWidth, innerWidth)"); wide > b.width {
		b.t.Errorf("%s: the page is %d wide on a device of %d: %s", what, wide, b.width, b.text())
	}
	if faults := evaluate[[]string](b, tables); len(faults) > 0 {
		b.t.Errorf("%s: %s", what, strings.Join(faults, "\n"))
	}
}

// run executes actions that stay on the page.
func (b *tab) run(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v; the page is %s", what, err, b.text())
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.300s: %v", expression, err)
	}
	return v
}

// text is the address and the text of the page, in messages of tests.
func (b *tab) text() string {
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + ' ' + document.querySelector('main').innerText.slice(0, 3000)"))
	if err != nil {
		return err.Error()
	}
	return text
}

// visit opens a page by its address.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.load("open "+path, chromedp.Navigate(b.console+path))
}

// mark finds the first visible element by a CSS selector and a part of its text, for the next step.
func (b *tab) mark(selector, text string) chromedp.CSS {
	b.t.Helper()
	if !b.has(selector, text) {
		b.t.Fatalf("no visible %s with %q on %s", selector, text, b.text())
	}
	return chromedp.CSS("[data-target]")
}

// has reports whether an element with a text is visible.
func (b *tab) has(selector, text string) bool {
	b.t.Helper()
	args, err := json.Marshal([]string{selector, text})
	if err != nil {
		b.t.Fatal(err)
	}
	return evaluate[bool](b, fmt.Sprintf(`(([selector, text]) => {
		document.querySelectorAll('[data-target]').forEach(e => e.removeAttribute('data-target'));
		const found = [...document.querySelectorAll(selector)].find(e => e.textContent.includes(text) && e.checkVisibility());
		if (found) found.setAttribute('data-target', '');
		return !!found;
	})(%s)`, args))
}

// sees fails unless elements with the texts are visible.
func (b *tab) sees(selector string, texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.mark(selector, text)
	}
}

// follow activates an element that leads to another page.
func (b *tab) follow(selector, text string) {
	b.t.Helper()
	b.load("follow "+selector+" "+text, b.activate(selector, text))
}

// press activates an element that stays on its page.
func (b *tab) press(selector, text string) {
	b.t.Helper()
	b.run("press "+selector+" "+text, b.activate(selector, text))
}

// activate clicks on an element, or goes to it by the tabulator and presses Enter.
func (b *tab) activate(selector, text string) chromedp.Action[chromedp.Void] {
	b.t.Helper()
	b.clicks++
	target := b.mark(selector, text)
	if !b.keys {
		return chromedp.Click(target)
	}
	b.focus(selector + " " + text)
	return chromedp.KeyEvent(kb.Enter)
}

// focus presses the tabulator until the marked element has the focus. Each element on the way shows it, within the window.
func (b *tab) focus(name string) {
	b.t.Helper()
	for range 500 {
		b.run("tabulator", chromedp.KeyEvent(kb.Tab))
		at := evaluate[struct {
			Name                   string
			Outline, Inside, There bool
		}](b, `(e => { const s = getComputedStyle(e), r = e.getBoundingClientRect(); return {
			Name: e.outerHTML.slice(0, 120), There: e.hasAttribute('data-target'),
			Outline: e === document.body || s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2,
			Inside: e === document.body || r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth,
		}})(document.activeElement)`)
		if !at.Outline || !at.Inside {
			b.t.Errorf("the focus is not visible on %s (outline %t, in the window %t)", at.Name, at.Outline, at.Inside)
		}
		if at.There {
			return
		}
	}
	b.t.Fatalf("the tabulator does not reach %s", name)
}

// logIn enters the token of administrators.
func (b *tab) logIn() {
	b.t.Helper()
	b.visit("/")
	b.run("the token has the focus", chromedp.WaitReady(chromedp.CSS("#token:focus")))
	b.load("log in", chromedp.KeyEvent(adminToken+kb.Enter))
}
