package markdown

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Pictures are the hosts whose pictures a text may show. The zero value allows none.
type Pictures struct{ hosts []string }

// PicturesOf allows pictures of hosts. "*.example.com" stands for all hosts below example.com.
func PicturesOf(hosts []string) Pictures {
	var p Pictures
	for _, h := range hosts {
		p.hosts = append(p.hosts, strings.ToLower(strings.TrimSuffix(strings.TrimSpace(h), ".")))
	}
	return p
}

// Bounds in bytes, of a target, and of one that holds a whole picture.
const (
	maxTarget = 4000
	maxData   = 128 << 10
)

// linkTarget reads (address "title"), and n is its length; 0: it has no end; -1: it has none within the bound. The bytes of a
// picture end before the next link.
func linkTarget(s string) (dest, raw string, n int) {
	depth, pointed, bound := 0, false, maxTarget
	isData := holdsData.MatchString(s[:min(len(s), maxTag)])
	if isData {
		bound = maxData
	}
	for i := 0; i < len(s) && n == 0; i++ {
		switch {
		case i == bound, isData && s[i] == ']' && strings.HasPrefix(s[i:], "]("):
			return "", "", -1
		case s[i] == '\\':
			i++
		case s[i] == '<' && strings.TrimSpace(s[1:i]) == "" && depth == 1:
			pointed = true
		case s[i] == '>':
			pointed = false
		case pointed:
		case s[i] == '(':
			depth++
		case s[i] == ')':
			if depth--; depth == 0 {
				n = i + 1
			}
		}
	}
	if n == 0 {
		return "", "", 0
	}
	raw = s[1 : n-1]
	dest = strings.TrimSpace(raw)
	if strings.HasPrefix(dest, "<") {
		dest, _, _ = strings.Cut(dest[1:], ">")
		return dest, raw, n
	}
	if at := strings.IndexAny(dest, " \t\n"); at > 0 { // A title follows, or a broken address.
		if title := strings.TrimSpace(dest[at:]); strings.ContainsAny(title[:1], `"'(`) {
			dest = dest[:at]
		}
	}
	return dest, raw, n
}

var holdsData = regexp.MustCompile(`^(?i)\(\s*<?data:`)

// decoded is an address as a browser reads it.
func decoded(dest string) string {
	dest = html.UnescapeString(dest)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, dest)
}

func (p Pictures) allows(dest string) bool {
	u, err := url.Parse(html.UnescapeString(dest))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Opaque != "" || strings.ContainsAny(dest, "\\ \t\r\n") {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	for _, h := range p.hosts {
		if below, ok := strings.CutPrefix(h, "*"); host != "" && (h == host || ok && strings.HasPrefix(below, ".") && strings.HasSuffix(host, below)) {
			return true
		}
	}
	return false
}

var schemeOf = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):(\d)?`)

// mayOpen reports whether a link to an address only opens a page or writes a letter.
func mayOpen(dest string) bool {
	m := schemeOf.FindStringSubmatch(decoded(strings.ReplaceAll(dest, `\`, "")))
	if m == nil {
		return true
	}
	switch strings.ToLower(m[1]) {
	case "http", "https", "mailto", "tel":
		return true
	}
	return m[2] != "" // a host and its port
}

var linkSafe = strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", "\t", "%20", "\n", "%20", `"`, "%22", "!", "%21", "[", "%5B", "]", "%5D", "`", "%60")

// shownLink is a link in place of a picture. It shows its host.
func shownLink(alt, dest string) string {
	clean := decoded(dest)
	if strings.HasPrefix(clean, "//") {
		clean = "https:" + clean
	}
	u, err := url.Parse(clean)
	alt = strings.TrimSpace(alt)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return alt + "（" + inert(dest) + "）"
	}
	if alt == "" {
		return "[" + u.Hostname() + "](" + linkSafe.Replace(clean) + ")"
	}
	return "[" + alt + "（" + u.Hostname() + "）](" + linkSafe.Replace(clean) + ")"
}

var dataKind = regexp.MustCompile(`^(?i)data:(?:image|audio|video|font|application)/[a-z0-9.+-]*`)

// maxInert bounds an address that is shown as text, in characters.
const maxInert = 80

// inert is an address that no client takes for one. The bytes of a picture in the address are left out.
func inert(dest string) string {
	dest = decoded(dest)
	if m := dataKind.FindString(dest); m != "" {
		dest = m + "…"
	}
	dest = strings.NewReplacer(":", "：", "<", "", ">", "", "&", "＆", "!", "！", "[", "［", "]", "］").Replace(dest)
	if rs := []rune(dest); len(rs) > maxInert {
		dest = string(rs[:maxInert]) + "…"
	}
	return dest
}
