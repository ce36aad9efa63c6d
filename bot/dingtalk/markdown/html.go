package markdown

import (
	"html"
	"regexp"
	"strings"
)

var (
	autolinked = regexp.MustCompile("^<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\\s<>!`\\[\\]]*)>")
	tagStart   = regexp.MustCompile(`^</?([A-Za-z][A-Za-z0-9-]*)`)
	// These only format, and have no attribute that fetches.
	formats = regexp.MustCompile(`^(?i)<(?:/?(?:b|i|u|s|em|strong|del|ins|mark|sub|sup|kbd|small|br|hr|p|font)\s*/?|font\s+color=["']?#?\w+["']?)>`)
	attr    = regexp.MustCompile(`(?is)\b(src|srcset|href|alt|title)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))`)
	anchor  = regexp.MustCompile(`(?is)^<a\b([^>]*)>(.*?)</a\s*>`)
	image   = regexp.MustCompile(`(?is)^<img\b((?:"[^"]*"|'[^']*'|[^>"'])*)>`)
	growing = regexp.MustCompile(`(?is)^<(?:i|im|img|img[\s/][^>]*|a|a\s[^>]*|a\s[^>]*>(?:[^<]|<[^/])*(?:</?|</a\s*)?)$`)
)

// elements are the names of HTML, besides those that only format. Other names in angle brackets, such as types in
// programs, are text.
var elements = func() map[string]bool {
	names := map[string]bool{}
	for n := range strings.FieldsSeq(`a abbr acronym address applet area article aside audio base bdi bdo bgsound blink blockquote body button canvas
caption center cite code col colgroup data datalist dd details dfn dialog dir div dl dt embed fieldset figcaption figure footer font form frame frameset h1
h2 h3 h4 h5 h6 head header hgroup html iframe image img input isindex keygen label legend li link listing main map marquee math menu menuitem meta meter
nav nobr noembed noframes noscript object ol optgroup option output param picture plaintext portal pre progress q rp rt ruby samp script search section
select slot source span strike style summary svg table tbody td template textarea tfoot th thead time title tr track tt ul var video wbr xmp`) {
		names[n] = true
	}
	return names
}()

// Bounds in bytes, of a tag at the end of a growing text, and of one with its content.
const (
	maxTag     = 1000
	maxElement = 8000
)

func (s *sanitizer) tag(rest string, depth int) (string, int) {
	if m := autolinked.FindStringSubmatch(rest); m != nil {
		if mayOpen(m[1]) {
			return m[0], len(m[0])
		}
		return inert(m[1]), len(m[0])
	}
	if m := formats.FindString(rest); m != "" {
		return m, len(m)
	}
	if m := image.FindStringSubmatch(rest[:min(len(rest), maxElement)]); m != nil {
		values := attributes(m[1])
		switch dest := values["src"]; {
		case dest == "":
			return plainLabel(values["alt"]), len(m[0])
		case s.allows(dest):
			return "![" + plainLabel(values["alt"]) + "](" + linkSafe.Replace(dest) + ")", len(m[0])
		default:
			return shownLink(plainLabel(values["alt"]), dest), len(m[0])
		}
	}
	if m := anchor.FindStringSubmatch(rest[:min(len(rest), maxElement)]); m != nil && depth <= maxDeep {
		dest, inner := attributes(m[1])["href"], s.inline(m[2], depth+1)
		switch {
		case dest == "":
			return inner, len(m[0])
		case mayOpen(dest):
			return "[" + inner + "](" + linkSafe.Replace(decoded(dest)) + ")", len(m[0])
		}
		return inner + "（" + inert(dest) + "）", len(m[0])
	}
	if s.open && len(rest) <= maxTag && growing.MatchString(rest) {
		return "", -1
	}
	m := tagStart.FindStringSubmatch(rest)
	end := strings.IndexAny(rest[1:], "<>")
	switch {
	case strings.HasPrefix(rest, "<!"), m != nil && elements[strings.ToLower(m[1])], m != nil && end > 0 && strings.Contains(rest[:end+1], "="):
		return "&lt;", 1
	}
	return "", 0
}

func attributes(text string) map[string]string {
	values := map[string]string{}
	for _, m := range attr.FindAllStringSubmatch(text, -1) {
		if name := strings.ToLower(m[1]); values[name] == "" {
			values[name] = strings.TrimSpace(html.UnescapeString(m[2] + m[3] + m[4]))
		}
	}
	return values
}

// plainLabel is an attribute as the text of a link.
func plainLabel(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("[", "［", "]", "］", "<", "＜", "!", "！").Replace(s)), " ")
}
