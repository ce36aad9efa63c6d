package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/jackc/pgx/v5"

	"ebb/cmd/lab/rig"
)

// TestConsole is the work of an administrator in Chromium. One browser and one seeded database serve all parts.
func TestConsole(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for name, one := range map[string]struct {
		look
		keys bool
		lang string // language of the pages
	}{
		"mouse":          {look{width: 1280, language: "zh-CN,zh;q=0.9"}, false, "zh-CN"},
		"keyboard":       {look{width: 1280, language: "en-GB,en", dark: true}, true, "en"},
		"phone":          {look{width: 375, language: "en", phone: true, dark: true}, false, "en"},
		"without script": {look{width: 375, language: "zh-CN", noScript: true}, true, "zh-CN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := w.open(t, one.look)
			b.keys = one.keys
			b.logIn()
			if lang := evaluate[string](b, "document.documentElement.lang"); lang != one.lang {
				t.Errorf("the language is %s, want %s", lang, one.lang)
			}
			b.findForgottenOrder()
			b.undoCompaction()
			b.forgetPerson()
			if others := b.others(); len(others) > 0 {
				t.Errorf("requests to other origins: %q", others)
			}
		})
	}
	t.Run("accessible", func(t *testing.T) { t.Parallel(); w.open(t, desk).checkAccess(t) })
}

// findForgottenOrder leads from the conversations to the answer that forgot the order number, and to what its compaction
// kept, in four clicks.
func (b *tab) findForgottenOrder() {
	b.t.Helper()
	b.follow("nav a[href='/sessions']", "")
	b.clicks = 0
	b.follow("td a", release.title)
	b.sees(".event.assistant", forgetful)
	b.press("a[href^='#c']", "#")
	b.sees(".cut", "4,", "2,")
	b.press(".cut details:not([open]) summary", "")
	b.sees(".cut .text", "pay-stage-2")
	b.press(".cut details:not([open]) summary", "")
	b.sees(".cut .receipt li", orderNumber)
	if b.clicks > 4 {
		b.t.Errorf("%d clicks lead to what was kept, want at most 4", b.clicks)
	}
}

// undoCompaction takes the compaction back on the page of the conversation.
func (b *tab) undoCompaction() {
	b.t.Helper()
	b.follow(".cut a[href^='/compactions/']", "")
	b.sees("h1", "#")
	b.sees("section .event", orderNumber)
	b.press(".act summary", "")
	b.follow("form[action$='/undo'] button", "")
	if n := b.count("SELECT compacted_seq FROM dingtalk_sessions WHERE session_key = $1", release.key()); n != 0 {
		b.t.Errorf("after the undo the context begins behind event %d, want 0", n)
	}
	if b.has(".archived", "") || b.has("form[action$='/undo']", "") {
		b.t.Errorf("after the undo the page has compacted events, or offers another undo: %s", b.text())
	}
}

// forgetPerson forgets a member after a look at the counts of what goes.
func (b *tab) forgetPerson() {
	b.t.Helper()
	said := b.count("SELECT count(*) FROM dingtalk_session_events WHERE sender_id = $1", rig.Alex.ID)
	b.follow("a.speaker", rig.Alex.Name)
	b.sees("dd", fmt.Sprint(said))
	b.press(".act summary", "")
	b.sees(".act p", fmt.Sprint(said))
	b.follow("form[action$='/forget'] button", "")
	if n := b.count("SELECT count(*) FROM dingtalk_session_events WHERE sender_id = $1 OR content LIKE '%' || $2 || '%'", rig.Alex.ID, orderNumber); n > 0 {
		b.t.Errorf("%d events of the forgotten member are left", n)
	}
	if b.has("td", orderNumber) {
		b.t.Errorf("a memory of the forgotten member is left: %s", b.text())
	}
	b.follow("nav a[href='/audit']", "")
	for _, action := range []string{"undo", "forget_person"} {
		b.sees("td", action)
	}
}

// count reads a number from the console's database.
func (b *tab) count(query string, args ...any) (n int) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.database)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = conn.Close(b.t.Context()) }()
	if err := conn.QueryRow(b.t.Context(), query, args...).Scan(&n); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// axe finds faults of accessibility. Its licence is next to it.
//
//go:embed testdata/axe/axe.min.js
var axe string

// checkAccess holds that no page has a serious fault of accessibility, in both themes, also unfolded.
func (b *tab) checkAccess(t *testing.T) {
	t.Helper()
	b.visit("/login")
	b.checkPage(t, "/login")
	b.logIn()
	p := b.paths
	for _, path := range []string{
		"/", "/sessions", "/sessions?q=state:asleep", "/sessions?q=none", p.Session, p.Longest, p.Private, "/compactions", p.Attempt, "/memories", p.Memory,
		p.Person, "/usage", "/attention", "/restarts", "/settings", "/audit",
	} {
		b.visit(path)
		b.checkPage(t, path)
	}
	if others := b.others(); len(others) > 0 {
		t.Errorf("requests to other origins: %q", others)
	}
}

func (b *tab) checkPage(t *testing.T, path string) {
	t.Helper()
	evaluate[bool](b, "document.querySelectorAll('details').forEach(d => d.open = true) || true")
	evaluate[bool](b, axe+"; true")
	for _, scheme := range []string{"light", "dark"} {
		if err := command(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		}); err != nil {
			t.Fatal(err)
		}
		rules := map[string]string{"light": "", "dark": ", runOnly: ['color-contrast']"}[scheme] // the theme is colors alone
		faults := evaluate[[]string](b, `axe.run({resultTypes: ['violations']`+rules+`}).then(r => r.violations
			.filter(v => v.impact === 'serious' || v.impact === 'critical')
			.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.failureSummary).join(' | ')))`)
		slices.Sort(faults)
		if len(faults) > 0 {
			t.Errorf("%s, %s: %s", path, scheme, strings.Join(faults, "\n"))
		}
	}
}
