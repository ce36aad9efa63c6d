package transcript

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
	"ebb/sessions"
)

// P70, P71: whatever is said, a transcript has one line an event that is valid JSON and says it, and the fence occurs
// nowhere in the data.
func TestTranscriptKeepsItsShape(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := compactiontest.Hostile().Draw(t, "text")
		out, _ := Writer{Counter: compactiontest.Counter()}.Write([]sessions.Event{
			{Seq: 1, Role: sessions.RoleUser, Content: text, SenderNick: text},
			{Seq: 2, Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{Name: "look", Arguments: text}}},
			{Seq: 3, Role: sessions.RoleTool, Content: text, ToolName: text},
		}, 1<<20)
		lines := strings.Split(out, "\n")
		if len(lines) != 5 {
			t.Fatalf("%d lines: %q", len(lines), out)
		}
		mark := strings.TrimPrefix(lines[0], "<<<transcript ")
		for i, l := range lines[1:4] {
			var got eventLine
			if err := json.Unmarshal([]byte(l), &got); err != nil || got.N != int64(i+1) {
				t.Fatalf("line %d is %q: %v", i+1, l, err)
			}
			if strings.Contains(l, mark) {
				t.Fatal("the fence occurs in the data")
			}
		}
	})
}

// P25: pictures and files become breadcrumbs, however their bytes stand in a text; words around them stay.
func TestBytesBecomeBreadcrumbs(t *testing.T) {
	t.Parallel()
	raw := make([]byte, 3000)
	for i := range raw {
		raw[i] = byte(rand.Uint32())
	}
	code, web := base64.StdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw)
	var wrapped strings.Builder
	for i := 0; i < len(code); i += 76 {
		wrapped.WriteString(code[i:min(len(code), i+76)] + "\n")
	}
	escaped := strings.ReplaceAll(wrapped.String(), "\n", `\n`)
	for name, c := range map[string]struct{ text, want string }{
		"data uri":          {"看 data:image/png;base64," + code + " 这张图", "看 [image: png] 这张图"},
		"chinese after it":  {"data:image/png;base64," + code + "这张图", "[image: png]这张图"},
		"small":             {"a data:image/gif;base64,R0lGODlhAQABAAAAACw= b", "a [image: gif] b"},
		"markdown":          {"![架构图](data:image/jpeg;base64," + code + ")如上", "[image: 架构图]如上"},
		"markdown, bare":    {"![](data:image/jpeg;base64," + code + ") x", "[image: jpeg] x"},
		"in brackets":       {"(data:image/png;base64," + code + ") x", "([image: png]) x"},
		"upper case":        {"DATA:IMAGE/PNG;BASE64," + code, "[image: png]"},
		"parameters":        {"data:text/plain;charset=utf-8;base64," + code + ".", "[file: plain]."},
		"wrapped":           {"data:image/png;base64," + wrapped.String() + "好", "[image: png]\n好"},
		"json":              {`{"type":"image_url","url":"data:image/png;base64,` + code + `"}`, `{"type":"image_url","url":"[image: png]"}`},
		"escaped":           {`{"data":"` + escaped + `"}`, ""},
		"nothing announces": {`{"data":"` + code + `","ok":true}`, fmt.Sprintf(`{"data":"[data: %d characters]","ok":true}`, len(code))},
		"for the web":       {"v " + web, fmt.Sprintf("v [data: %d characters]", len(web))},
		"twice":             {"data:image/png;base64," + code + " data:image/png;base64," + code, "[image: png] [image: png]"},
	} {
		for _, role := range []sessions.Role{sessions.RoleUser, sessions.RoleTool} {
			got := Cleaner(nil).EventText(sessions.Event{Role: role, Content: c.text})
			if c.want != "" && got != c.want {
				t.Errorf("%s: %.200q, want %q", name, got, c.want)
			}
			if strings.Contains(got, code[200:260]) || strings.Contains(got, web[200:260]) || strings.Contains(got, code[len(code)-20:]) {
				t.Errorf("%s: bytes are left in %.300q", name, got)
			}
		}
		if again := replaceEncoded(replaceEncoded(c.text)); again != replaceEncoded(c.text) {
			t.Errorf("%s: changed twice: %.200q", name, again)
		}
	}
}

// A text that only looks a little like encoded bytes stays.
func TestWordsAreNoBytes(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a long path":  "/" + strings.Repeat("srv/releases/current/", 15) + "app.log",
		"one letter":   strings.Repeat("x", 500),
		"a rule":       strings.Repeat("-", 300) + "\n" + strings.Repeat("_", 300),
		"a hash":       "sha256:" + strings.Repeat("0123456789abcdef", 4),
		"speech of it": "the prefix data:image/png;base64 says what follows; base64, by itself, is an encoding",
		"chinese":      strings.Repeat("很长的一段话没有任何停顿", 60),
	} {
		if got := replaceEncoded(text); got != text {
			t.Errorf("%s became %q", name, got)
		}
	}
}

// Summaries repeat other events: they are lines only when summaries are the source.
func TestSummariesAreLinesOnlyWhereAsked(t *testing.T) {
	t.Parallel()
	events := []sessions.Event{{Seq: 1, Role: sessions.RoleUser, Content: "words"}, {Role: sessions.RoleSummary, Content: "gist"}}
	for _, shown := range []bool{false, true} {
		text, n := Writer{Counter: compactiontest.Counter(), Summaries: shown}.Write(events, 1000)
		if n != 2 || strings.Contains(text, "gist") != shown || !strings.Contains(text, "words") {
			t.Errorf("%d events: %s", n, text)
		}
	}
}
