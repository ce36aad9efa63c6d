package knowledge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"ebb/sessions"
)

// A name is one line of bounded length, with its extension, without characters that hide, steer or end a citation. Forms of one name are equal.
func TestNameOf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("很长的名字", 60)
	for name, want := range map[string]string{
		"":                            "文件 file",
		" \t\n":                       "文件 file",
		"\u202e\u200b\u200d":          "文件 file",
		"../../etc/passwd":            "../../etc/passwd",
		`C:\temp\a.docx`:              `C:\temp\a.docx`,
		"a\x00b\r\nc\x1b[1m.docx":     "ab c［1m.docx",
		"甲\u202excod.exe":             "甲xcod.exe",
		"👩\u200d👩\u200d👧 全家.xlsx":     "👩\u200d👩\u200d👧 全家.xlsx",
		"Cafe\u0301.docx":             "Café.docx",
		"a》 第 9 页 page 9 《b [x].docx": "a〉 第 9 页 page 9 〈b ［x］.docx",
		long + ".docx":                string([]rune(long)[:sessions.MaxFileName-6]) + "….docx",
		long + "." + long:             string([]rune(long)[:sessions.MaxFileName-1]) + "…",
		"a." + long:                   "a." + string([]rune(long)[:sessions.MaxFileName-3]) + "…",
	} {
		if got := NameOf(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func FuzzNameOf(f *testing.F) {
	for _, name := range []string{"", "甲.docx", "a\u202eb", strings.Repeat("é", 300) + ".漢字漢字漢字漢", "e\u0301", "\xff\xfe.pdf"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := NameOf(name)
		if got == "" || !utf8.ValidString(got) || utf8.RuneCountInString(got) > sessions.MaxFileName || strings.ContainsAny(got, "[]《》\n") ||
			strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' }) {
			t.Errorf("%q is %q", name, got)
		}
		if again := NameOf(got); again != got {
			t.Errorf("%q is %q, and %q again", name, got, again)
		}
	})
}

// library lists files.
type library []sessions.KeptFile

func (l library) Files(context.Context, sessions.Key) ([]sessions.KeptFile, error) { return l, nil }

// A file is found by its number and by its name in any form, also as answers write it.
func TestFind(t *testing.T) {
	t.Parallel()
	d := Desk{Store: library{{ID: 1, Name: "Café（新）.docx"}, {ID: 2, Name: "*甲*_乙.csv"}, {ID: 12, Name: "2"}}, Location: time.UTC}
	for what, want := range map[string]int64{
		"1": 1, " #2 ": 2, "＃12": 12, "Café（新）.docx": 1, "《CAFE\u0301(新).DOCX》": 1, `"*甲*_乙.csv"`: 2, "＊甲＊_乙.csv": 2, "3": 0, "": 0, "甲": 0, "../1": 0,
	} {
		if f, err := d.Find(t.Context(), "k", what); f.ID != want || (want == 0) != errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("%q is %d, %v, want %d", what, f.ID, err, want)
		}
	}
}

// brought has the attachments of a message.
type brought []sessions.Media

func (brought) Fetch(context.Context, sessions.Lease, []sessions.Event) error { return nil }

func (b brought) List(context.Context, sessions.Key, sessions.Event) ([]sessions.Media, error) {
	return b, nil
}

// Each refusal says why, and names the remedy. No answer promises a file that is not kept.
func TestAnswersOfRefusals(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		m    sessions.Media
		kept sessions.Keeping
		err  error
	}{
		"只有发送或记住它的人和管理员可以换成新版": {kept: sessions.Keeping{KeptFile: sessions.KeptFile{ID: 3, Name: "a.docx"}}, err: sessions.ErrOthersFile},
		"已经记住了 100 个文件":        {err: sessions.ErrManyFiles},
		"加起来最多 5000 页":         {err: sessions.ErrManyPages},
		"现在没能做到，请稍后再试":         {err: errors.New("away")},
		"图片没有文字":               {m: sessions.Media{Kind: sessions.MediaPicture}},
		"没有文字":                 {m: sessions.Media{Fault: sessions.MediaFault("empty"), Name: "a.pdf"}},
	} {
		c.m.Name = "a.docx"
		d := Desk{Store: library{}, Media: brought{c.m}, Location: time.UTC}
		got := d.Answer(t.Context(), Request{
			Asked: sessions.Event{ID: 7, Message: &sessions.Message{Attachments: []sessions.Attachment{{Kind: "file"}}}}, Lang: "zh",
			Keep: func(context.Context, sessions.KeptFile) (sessions.Keeping, error) { return c.kept, c.err },
		})
		if !strings.Contains(got, want) || strings.Contains(got, "以后") || strings.Contains(got, "已记住《") {
			t.Errorf("want %q: %s", want, got)
		}
	}
}
