// Package render shows the pages of the console: templates, the words of both languages, and the static files.
package render

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"ebb/bot/wording"
	"ebb/sessions"
)

var (
	//go:embed templates/*.html
	templateFiles embed.FS
	//go:embed static
	staticFiles embed.FS
	//go:embed catalog/*.json
	catalogFiles embed.FS
)

// languages has the default first.
var languages = []string{"zh", "en"}

// variant has no links to people without whole: such roles may not open their pages.
type variant struct {
	lang  string
	whole bool
}

// Renderer shows pages in all languages.
type Renderer struct {
	zone     *time.Location
	words    map[string]Words
	pages    map[variant]map[string]parsedPage // by name
	version  string                            // changes with the static files
	currency func() string                     // shown with costs
}

// parsedPage parses a page when it is shown first. All pages in all variants would take a third of an idle gateway's heap, and
// each garbage collection would scan them.
type parsedPage func() (*template.Template, error)

// New reads all catalogs and prepares each page in each language and variant. A template is parsed at its first use: a test
// that opens one page does not pay for all.
func New(zone *time.Location, currency func() string) (*Renderer, error) {
	r := &Renderer{zone: zone, words: map[string]Words{}, pages: map[variant]map[string]parsedPage{}, version: staticVersion(), currency: currency}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list the templates: %w", err)
	}
	for _, lang := range languages {
		all := map[string]string{}
		text, err := catalogFiles.ReadFile("catalog/" + lang + ".json")
		if err != nil {
			return nil, fmt.Errorf("read the catalog: %w", err)
		}
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("read the catalog of %s: %w", lang, err)
		}
		r.words[lang] = Words{lang, all}
		for _, whole := range []bool{true, false} {
			v := variant{lang, whole}
			r.pages[v] = map[string]parsedPage{}
			for _, name := range names {
				if page := strings.TrimSuffix(path.Base(name), ".html"); page != "layout" && page != "parts" {
					r.pages[v][page] = sync.OnceValues(func() (*template.Template, error) { return r.parse(v, name) })
				}
			}
		}
	}
	return r, nil
}

func (r *Renderer) parse(v variant, name string) (*template.Template, error) {
	t, err := template.New("layout.html").Funcs(r.funcs(r.words[v.lang])).Funcs(template.FuncMap{"whole": func() bool { return v.whole }}).
		ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", name)
	if err != nil {
		return nil, fmt.Errorf("parse the template %s: %w", name, err)
	}
	return t, nil
}

// SilentAfter is the time without a heartbeat after which a replica is shown as silent.
const SilentAfter = 15 * time.Second

// foldedRunes is the length of a message from which on it is folded.
const foldedRunes = 1200

// funcs are those of one language. Times are in the zone of the installation, since one conversation has readers in several; the
// attribute for machines is UTC.
func (r *Renderer) funcs(w Words) template.FuncMap {
	return template.FuncMap{
		"t": w.T, "code": func(kind string, code any) CodeView {
			return CodeView{fmt.Sprint(code), w.Code(kind, fmt.Sprint(code))}
		},
		"reason":  w.Failure,
		"speaker": w.Speaker, "num": num, "add": func(n, m int64) int64 { return n + m }, "cost": func(f float64) string { return wording.Cost(f, r.currency()) },
		"time": func(t time.Time) string {
			if t.IsZero() {
				return "–"
			}
			return t.In(r.zone).Format("2006-01-02 15:04:05")
		},
		"dayBegan": func(t time.Time) string { return r.dayBegan(t).Format("2006-01-02 15:04") },
		"dayFrom":  func() string { return r.dayBegan(time.Now()).Format("15:04") },
		"zone":     func() string { return ZoneName(time.Now().In(r.zone)) },
		"relative": func(t time.Time) string { return w.relative(t, time.Now()) },
		"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"period": func(d time.Duration) string {
			switch {
			case d%time.Hour != 0:
				return d.String()
			case d%(24*time.Hour) != 0:
				return w.T("period.hours", int(d/time.Hour))
			}
			return w.T("period.days", int(d/(24*time.Hour)))
		},
		"duration": func(d time.Duration) string { return d.Round(time.Millisecond * 10).String() },
		"key":      func(k sessions.Key) string { return url.PathEscape(string(k)) },
		"id":       func(u sessions.UserID) string { return url.PathEscape(string(u)) },
		"form":     func(key string, n any) string { return wording.Form(w.T(key), n) },
		"seconds": func(d time.Duration) string {
			if d >= time.Minute {
				return w.T("period.minutes", int(d/time.Minute))
			}
			return w.T("period.seconds", int(d.Round(time.Second)/time.Second))
		},
		"silent": func(d time.Duration) bool { return d > SilentAfter },
		"short":  short,
		"runes":  utf8.RuneCountInString,
		"long":   func(text string) bool { return utf8.RuneCountInString(text) > foldedRunes },
		"percent": func(part, whole int) string {
			if whole == 0 {
				return "–"
			}
			return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
		},
		"tab":    func(v View, href, name string) tab { return tab{href, name, v.current(name)} },
		"filter": func(text, wrong, hint string) filterView { return filterView{text, wrong, hint} },
		"sums": func(head, prefix string, rows, total any) sumsView {
			return sumsView{head, prefix, rows, total}
		},
		"asset": func(name string) string { return "/static/" + name + "?v=" + r.version },
	}
}

// dayBegan returns the beginning of a time's day of usage, which is a day of UTC, in the zone of the pages.
func (r *Renderer) dayBegan(t time.Time) time.Time {
	return t.UTC().Truncate(24 * time.Hour).In(r.zone)
}

// ZoneName returns a name such as "Asia/Shanghai (UTC+08:00)".
func ZoneName(t time.Time) string {
	offset := "UTC"
	if _, seconds := t.Zone(); seconds != 0 {
		offset += t.Format("-07:00")
	}
	if name := t.Location().String(); name != "" && name != "UTC" && name != "Local" {
		return name + " (" + offset + ")"
	}
	return offset
}

// View is a page with its place, its reader and its data.
type View struct {
	Lang  string
	Page  string
	Path  string // address of the request, with its query
	Role  string // empty: not logged in
	Admin bool   // the role may change what it sees
	Whole bool   // the role sees all groups
	Nick  string
	Data  any
}

type (
	tab struct {
		Href, Name string
		Current    bool
	}
	filterView struct{ Filter, Wrong, Hint string }
	sumsView   struct {
		Head, Prefix string
		Rows, Total  any
	}
)

var parents = map[string]string{
	"session": "sessions", "work": "sessions", "attempt": "compactions", "memory": "memories", "person": "people", "search": "sessions", "approvals": "attention", "retention": "privacy",
}

func (v View) current(tab string) bool { return v.Page == tab || parents[v.Page] == tab }

// InLanguage returns the address of the page in a language, with its filter and its place.
func (v View) InLanguage(lang string) string {
	u, err := url.Parse(v.Path)
	if err != nil {
		u = &url.URL{}
	}
	q := u.Query()
	q.Set("lang", lang)
	return "?" + q.Encode()
}

// Words returns those of a language.
func (r *Renderer) Words(lang string) Words { return r.words[lang] }

// Show renders the whole page first, so that a fault shows no half page.
func (r *Renderer) Show(w http.ResponseWriter, req *http.Request, status int, v View) {
	var b bytes.Buffer
	t, err := r.pages[variant{v.Lang, v.Whole}][v.Page]()
	if err == nil {
		err = t.Execute(&b, v)
	}
	if err != nil {
		zerolog.Ctx(req.Context()).Error().Err(err).Str("page", v.Page).Msg("Failed to render page")
		http.Error(w, r.words[v.Lang].T("error.internal"), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the peer may be gone
}

const languageCookie = "ebb_language"

// Language takes the parameter lang, which is kept, then the cookie, then the browser's choice.
func (r *Renderer) Language(w http.ResponseWriter, req *http.Request) Words {
	if lang := req.URL.Query().Get("lang"); r.words[lang].Lang != "" {
		http.SetCookie(w, &http.Cookie{
			Name: languageCookie, Value: lang, Path: "/", MaxAge: int((365 * 24 * time.Hour).Seconds()), HttpOnly: true, SameSite: http.SameSiteLaxMode,
		})
		return r.words[lang]
	}
	if cookie, err := req.Cookie(languageCookie); err == nil && r.words[cookie.Value].Lang != "" {
		return r.words[cookie.Value]
	}
	for part := range strings.SplitSeq(req.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
		if known, ok := r.words[primary]; ok {
			return known
		}
	}
	return r.words[languages[0]]
}

// Static serves files that browsers may keep: their address changes with them.
func Static() http.Handler {
	files := http.FileServerFS(staticFiles)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		files.ServeHTTP(w, r)
	})
}

func staticVersion() string {
	h := sha256.New()
	for _, name := range []string{"static/app.css", "static/htmx.min.js"} {
		b, err := staticFiles.ReadFile(name)
		if err != nil {
			panic(err) // a file of the program
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func num(n any) string {
	digits := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "−", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// lineMark matches the marks of headings and lists at the beginnings of lines, such as a digest has.
var lineMark = regexp.MustCompile(`(?m)^\s*(?:#{1,6}|[-*])\s+`)

// short is a text in one line. The lines of a heading and of a list have dots between them in place of their marks.
func short(text string, runes int) string {
	if lineMark.MatchString(text) {
		text = strings.Trim(lineMark.ReplaceAllString(text, " · "), "· \n")
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > runes {
		return string(r[:runes]) + "…"
	}
	return text
}
