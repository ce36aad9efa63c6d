package main

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
)

// TestConsole is the work of an administrator in Chromium. One browser and one seeded database serve all parts.
func TestConsole(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for _, one := range journeys() {
		t.Run(one.String(), func(t *testing.T) {
			t.Parallel()
			b := w.open(t, one.look)
			b.keys, b.axe = one.keys, !one.keys // the keyboard leads to the pages of the mouse
			b.logIn()
			if lang := evaluate[string](b, "document.documentElement.lang"); !strings.HasPrefix(one.language, lang) {
				t.Errorf("the language is %s on a device of %s", lang, one.language)
			}
			b.findForgottenOrder()
			b.undoCompaction()
			b.forgetPerson()
			if others := b.others(); len(others) > 0 {
				t.Errorf("requests to other origins: %q", others)
			}
		})
	}
	t.Run("live", func(t *testing.T) { t.Parallel(); w.open(t, desk).watchCompaction() })
	t.Run("login by DingTalk", func(t *testing.T) { t.Parallel(); w.logInByDingTalk(t) })
	t.Run("group administrator", func(t *testing.T) { t.Parallel(); w.walkAsGroupAdministrator(t) })
	t.Run("accessible", func(t *testing.T) { t.Parallel(); w.open(t, desk).checkAccess(t) })
}

// journey is the way of a person through the pages.
type journey struct {
	look
	keys bool // without a pointer
}

// String names the journey, as in "zh-CN dark 375 keyboard".
func (j journey) String() string {
	theme, hand := "light", "mouse"
	if j.dark {
		theme = "dark"
	}
	if j.keys {
		hand = "keyboard"
	}
	if j.noScript {
		hand += " without script"
	}
	return fmt.Sprintf("%s %s %d %s", j.language, theme, j.width, hand)
}

// journeys are those in both languages and widths with a mouse, by keyboard in both widths and themes, and one without script. Each page is
// checked in both themes. The keyboard passes the same elements in each language.
func journeys() (all []journey) {
	desk, phone := look{width: 1280}, look{width: 375, phone: true}
	for _, l := range []look{desk, phone} {
		for _, l.language = range []string{"zh-CN", "en"} {
			all = append(all, journey{l, false})
		}
	}
	desk.language, phone.language = "zh-CN", "zh-CN"
	all = append(all, journey{desk, true}, journey{phone, true})
	dark := phone
	dark.language, dark.dark = "en", true
	return append(all, journey{dark, true}, journey{look{width: 375, language: "zh-CN", noScript: true}, true})
}

// findForgottenOrder leads from the overview to the answer that forgot the order number, and to the summary at its cut which has the
// number, in four clicks.
func (b *tab) findForgottenOrder() {
	b.t.Helper()
	b.clicks = 0
	b.follow("nav a[href='/sessions']", "")
	b.follow("td a", release.title)
	b.sees(".event.assistant", forgetful)
	b.checkLook()
	b.press("a[href^='#c']", "#")
	b.sees(".cut", "4,", "2,")
	b.press(".cut details:not([open]) summary", "")
	b.sees(".cut .text", "pay-stage-2", orderNumber)
	if b.clicks > 4 {
		b.t.Errorf("%d clicks lead to what was kept, want at most 4", b.clicks)
	}
	b.press(".cut details:not([open]) summary", "")
	b.sees(".cut .receipt li", orderNumber)
}

// checkLook holds that the header of a wide page is one line, that the page's end begins where its content does, and that marks of the
// chart are within it.
func (b *tab) checkLook() {
	b.t.Helper()
	at := evaluate[struct {
		Header, Main, Footer float64
		Outside              int
	}](b, `(box => { const plot = box('.plot'); return {
		Header: box('.top').height, Main: box('main').left, Footer: box('body > footer').left,
		Outside: [...document.querySelectorAll('.plot :is(circle, path)')].map(e => e.getBoundingClientRect()).filter(r => r.left < plot.left || r.right > plot.right).length,
	}})(selector => document.querySelector(selector).getBoundingClientRect())`)
	if at.Main != at.Footer || at.Outside > 0 || b.width > 1000 && at.Header > 60 {
		b.t.Errorf("a header of %.0f, the content at %.0f and the page's end at %.0f, %d marks outside of the chart", at.Header, at.Main, at.Footer, at.Outside)
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
	b.sees(".plot .undo", "4,")
	if !evaluate[bool](b, "[...document.querySelectorAll('.plot text')].every(t => t.getBBox().y >= document.querySelector('.plot .axis').y1.baseVal.value)") {
		b.t.Error("a label of the chart lies over its line")
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
	b.follow("a[href*='preview=yes']", "")
	b.sees("p.explain", fmt.Sprint(said))
	b.follow("form[action$='/forget'] button", "")
	if n := b.count("SELECT count(*) FROM dingtalk_session_events WHERE sender_id = $1 OR content LIKE '%' || $2 || '%'", rig.Alex.ID, orderNumber); n > 0 {
		b.t.Errorf("%d events of the forgotten member are left", n)
	}
	if b.has("td", orderNumber) {
		b.t.Errorf("a memory of the forgotten member is left: %s", b.text())
	}
	b.follow("nav a[href='/audit']", "")
	for _, action := range []string{"undo", "forget_person"} {
		b.sees("td [title="+action+"]", "")
	}
}

// watchCompaction sees a compaction begin and end on a page that is open, and by which replica it runs.
func (b *tab) watchCompaction() {
	b.t.Helper()
	answer := make(chan struct{})
	b.model.Add(openaitest.WhenFunc(func(r openaitest.Request) bool { return len(r.Tools) == 0 }, func(openaitest.Request) openaitest.Reply {
		<-answer
		return openaitest.Text(summary)
	}))
	b.logIn()
	b.visit(b.paths.Longest)
	b.await("#work .badge", "空闲")
	done := make(chan error, 1)
	go func() { done <- b.ask(b.ctx, longest, rig.Zhang, "/compact") }()
	b.await("#work .badge", "正在压缩")
	b.sees("#work", "最晚")
	b.sees("#work code", b.name)
	close(answer)
	b.await("#work a", "对话有了变化")
	if err := <-done; err != nil {
		b.t.Error(err)
	}
	b.follow("#work a", "对话有了变化")
	b.sees(".cut", "已由摘要代替")
}

// await waits until the page shows an element with a text by itself.
func (b *tab) await(selector, text string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	condition := fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))", selector, text)
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](condition, chromedp.WithPollingMutation())); err != nil {
		b.t.Fatalf("%s with %q does not appear: %v; the page is %s", selector, text, err, b.text())
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
	all := map[string][]string{ // by template
		"overview": {"/"}, "sessions": {"/sessions", "/sessions?q=none", "/sessions?q=state:asleep"}, "error": {"/nowhere"}, "session": {p.Session, p.Longest, p.Private},
		"compactions": {"/compactions"}, "attempt": {p.Attempt}, "memories": {"/memories"}, "memory": {p.Memory}, "person": {p.Person, p.Person + "?preview=yes"}, "usage": {"/usage"},
		"attention": {"/attention"}, "restarts": {"/restarts"}, "settings": {"/settings"}, "schedules": {"/schedules", "/schedules?q=state:done"}, "approvals": {"/approvals", "/approvals?q=state:waiting"}, "audit": {"/audit"}, "people": {"/people"}, "search": {p.Session + "/search", p.Session + "/search?q=%E5%8F%91%E5%B8%83"}, "privacy": {"/privacy"}, "retention": {"/retention?days=1"},
		"login": nil, "layout": nil, "parts": nil, "work": nil, "entered": nil, // parts of other pages, or checked with them
	}
	templates, err := filepath.Glob("../../../bot/console/render/templates/*.html")
	if err != nil || len(templates) == 0 {
		t.Fatalf("the templates of the console: %d, %v", len(templates), err)
	}
	for _, name := range templates {
		if _, ok := all[strings.TrimSuffix(filepath.Base(name), ".html")]; !ok {
			t.Errorf("no page of %s is checked", name)
		}
	}
	for _, path := range slices.Concat(slices.Collect(maps.Values(all))...) {
		b.visit(path)
		b.checkPage(t, path)
	}
	if others := b.others(); len(others) > 0 {
		t.Errorf("requests to other origins: %q", others)
	}
}

// checkPage checks a page with all of its parts unfolded: its accessibility in both themes, and its width, on a phone too.
func (b *tab) checkPage(t *testing.T, path string) {
	t.Helper()
	evaluate[bool](b, "document.querySelectorAll('details').forEach(d => d.open = true) || true")
	b.checkThemes(path)
	desk := b.look
	for _, l := range []look{phone, desk} {
		if b.look = l; l.apply(b.ctx) != nil {
			t.Fatalf("%s: a device of %d", path, l.width)
		}
		b.fits(path)
	}
}

// checkThemes holds that the page as it is has no serious fault of accessibility in either theme, which is colors alone.
func (b *tab) checkThemes(what string) {
	b.t.Helper()
	for _, theme := range []struct{ scheme, rules string }{{"dark", ", runOnly: ['color-contrast']"}, {"light", ""}} {
		if err := command(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme.scheme}},
		}); err != nil {
			b.t.Fatal(err)
		}
		if faults := b.faults(theme.rules); len(faults) > 0 {
			b.t.Errorf("%s, %s: %s", what, theme.scheme, strings.Join(faults, "\n"))
		}
	}
}

// faults are the serious faults of accessibility of the page as it is, with more options of axe.run.
func (b *tab) faults(rules string) []string {
	b.t.Helper()
	if !evaluate[bool](b, "'axe' in window") {
		evaluate[bool](b, axe+"; true")
	}
	found := evaluate[[]string](b, `axe.run({resultTypes: ['violations']`+rules+`}).then(r => r.violations
		.filter(v => v.impact === 'serious' || v.impact === 'critical')
		.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.failureSummary).join(' | ')))`)
	slices.Sort(found)
	return found
}
