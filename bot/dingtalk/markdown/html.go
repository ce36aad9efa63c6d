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
	// anchorTag closes an anchor, or opens the next one.
	anchorTag = regexp.MustCompile(`^(?i)<(?:/a\s*>|a[\s>])`)
	growing   = regexp.MustCompile(`(?is)^<(?:i|im|img|img[\s/][^>]*|a|a\s[^>]*|a\s[^>]*>(?:[^<]|<[^/])*(?:</?|</a\s*)?)$`)
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
	// maxAnchorTag bounds the blanks in a closing tag.
	maxAnchorTag = 20
)

// tagEnd is the length of the tag at the beginning; 0: it has no end. A value in quotes may have an angle bracket.
func tagEnd(s string) int {
	quote := byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"', c == '\'':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return 0
}

// anchor finds the end of the opening tag, the closing tag, and the length of both with their content; 0: no such element begins
// the text. An anchor ends before the next one.
func anchor(s string) (open, close, n int) {
	if open = strings.IndexByte(s, '>'); open < 0 {
		return 0, 0, 0
	}
	for close = open + 1; ; close++ {
		next := strings.IndexByte(s[close:], '<')
		if next < 0 {
			return 0, 0, 0
		}
		close += next
		if m := anchorTag.FindString(s[close:min(len(s), close+maxAnchorTag)]); m != "" {
			if m[1] != '/' {
				return 0, 0, 0
			}
			return open, close, close + len(m)
		}
	}
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
