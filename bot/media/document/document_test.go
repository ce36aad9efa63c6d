package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"ebb/bot/media/document/documenttest"
)

// xlsxOf is a sheet of people and amounts.
func xlsxOf(t testing.TB, rows int) []byte {
	t.Helper()
	table := [][]any{{"姓名", "金额"}}
	for i := range rows {
		table = append(table, []any{fmt.Sprintf("员工%d", i+1), 10 * (i + 1)})
	}
	b, err := documenttest.XLSX(table, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMain(m *testing.M) {
	if os.Getenv(ChildVariable) != "" {
		os.Exit(RunChild())
	}
	if path := os.Getenv(parentVariable); path != "" {
		os.Exit(runParent(path))
	}
	os.Exit(m.Run())
}

func read(b []byte, limits Limits) (pages []Page, cut bool, err error) {
	c, err := Read(bytes.NewReader(b), int64(len(b)), limits, func(p Page) error { pages = append(pages, p); return nil })
	return pages, c.Cut, err
}

func sandbox(t testing.TB) *Sandbox {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return NewSandbox(program)
}

func readInChild(t testing.TB, s *Sandbox, b []byte) (pages []Page, cut bool, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	c, err := s.Read(t.Context(), file, func(p Page) error { pages = append(pages, p); return nil })
	return pages, c.Cut, err
}

// Each kind is read as its pages, in this process and in a child.
func TestKindsAreRead(t *testing.T) {
	t.Parallel()
	gbk, err := simplifiedchinese.GBK.NewEncoder().String("编号,名称\n1,合同\n")
	if err != nil {
		t.Fatal(err)
	}
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String("编号\n合同")
	if err != nil {
		t.Fatal(err)
	}
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprintf("第 %d 页：条款", i+1)
	}
	for _, c := range []struct {
		name string
		file []byte
		page int // the number of the page with want
		want string
	}{
		{"text", []byte("# 标题\n正文"), 1, "# 标题\n正文"},
		{"text of Windows", []byte("a\r\nb"), 1, "a\nb"},
		{"GBK", []byte(gbk), 1, "编号,名称\n1,合同"},
		{"UTF-16", []byte(utf16), 1, "编号\n合同"},
		{"UTF-8 with a mark", []byte("\ufeff{\"a\": 1}"), 1, `{"a": 1}`},
		{"pdf", documenttest.PDF("第一页：预算 30 万", "第二页"), 1, "预算 30 万"},
		{"pdf of 200 pages", documenttest.PDF(many...), 180, "第 180 页：条款"},
		{"docx", documenttest.DOCX(`<w:p><w:r><w:t>第一段</w:t></w:r></w:p><w:p><w:r><w:br w:type="page"/><w:t>第二页</w:t></w:r></w:p>`), 2, "第二页"},
		{"docx with a deletion", documenttest.DOCX(`<w:p><w:del><w:r><w:delText>旧</w:delText></w:r></w:del><w:r><w:t>新</w:t></w:r></w:p>`), 1, "新"},
		{"docx with a table", documenttest.DOCX(`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>甲</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>乙</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`), 1, "甲\n | 乙"},
		{"pptx", documenttest.PPTX("第一张", "第二张", "3", "4", "5", "6", "7", "8", "9", "第十张"), 10, "第十张"},
		{"xlsx", xlsxOf(t, 500), 2, "姓名\t金额\n员工"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for where, f := range map[string]func() ([]Page, bool, error){
				"here": func() ([]Page, bool, error) { return read(c.file, DefaultLimits) }, "in a child": func() ([]Page, bool, error) { return readInChild(t, sandbox(t), c.file) },
			} {
				pages, cut, err := f()
				if err != nil || cut || len(pages) < c.page {
					t.Fatalf("%s: %d pages, cut %t, %v", where, len(pages), cut, err)
				}
				if p := pages[c.page-1]; p.Number != c.page || !strings.Contains(p.Text, c.want) {
					t.Errorf("%s: page %d is %q, want %q", where, p.Number, p.Text, c.want)
				}
			}
		})
	}
}

// A file that can't be read says why, also one whose name promises something else.
func TestFaultsAreNamed(t *testing.T) {
	t.Parallel()
	locked, err := documenttest.XLSX(nil, "1234")
	if err != nil {
		t.Fatal(err)
	}
	other, err := documenttest.Archive(map[string]io.Reader{"a.txt": strings.NewReader("a")})
	if err != nil {
		t.Fatal(err)
	}
	good := documenttest.PDF("一")
	for name, c := range map[string]struct {
		file []byte
		want Reason
	}{
		"nothing":            {nil, Empty},
		"blanks":             {[]byte("  \n \n"), Empty},
		"half a picture":     {[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), Broken},
		"a huge picture":     {documenttest.HugePNG(20_000), TooComplex},
		"a program":          {[]byte("\x7fELF\x02\x01\x01\x00\x00\x00"), Unsupported},
		"another archive":    {other, Unsupported},
		"half an archive":    {documenttest.DOCX("<w:p/>")[:60], Broken},
		"a legacy file":      {append(bytes.Clone(oleMagic), make([]byte, 4096)...), Legacy},
		"an encrypted sheet": {locked, Encrypted},
		"half a PDF":         {good[:len(good)/2], Broken},
		"a PDF of pictures":  {documenttest.PDF("", ""), Empty},
		"a PDF with no page": {[]byte("%PDF-1.4\nnothing"), Broken},
		"a bomb":             {documenttest.DOCXBomb(600 << 20), TooComplex},
		"a PDF with a bomb":  {documenttest.PDFBomb(700 << 20), TooComplex},
		"a deep document":    {documenttest.DOCX(strings.Repeat("<w:p>", 2000)), TooComplex},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := readInChild(t, sandbox(t), c.file)
			fault, ok := errors.AsType[*Fault](err)
			if !ok || fault.Reason != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// A parser that takes all memory, or does not end, costs its child alone.
func TestChildIsConfined(t *testing.T) {
	t.Parallel()
	for _, harm := range []string{"memory", "time", "noise"} {
		t.Run(harm, func(t *testing.T) {
			t.Parallel()
			s := sandbox(t)
			if harm == "time" {
				s.timeout = time.Second
			}
			_, _, err := readInChild(t, s, []byte(harmPrefix+harm))
			if fault, ok := errors.AsType[*Fault](err); !ok || fault.Reason != TooComplex {
				t.Errorf("got %v", err)
			}
		})
	}
}

// parentVariable makes the test a parent that reads a file in a child, and writes the child's number to its standard output.
const parentVariable = "EBB_TEST_PARENT"

func runParent(path string) int {
	program, err := os.Executable()
	if err != nil {
		return 1
	}
	file, err := os.Open(path)
	if err != nil {
		return 1
	}
	_, err = NewSandbox(program).Read(context.Background(), file, func(p Page) error { _, err := fmt.Println(p.Text); return err })
	fmt.Println(err)
	return 1
}

// A parser ends with its gateway, however that ends.
func TestChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(harmPrefix+"self"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), program)
	parent.Env = append(os.Environ(), parentVariable+"="+path)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	child := 0
	if _, err := fmt.Fscan(out, &child); err != nil || child <= 0 {
		t.Fatalf("no child: %d, %v", child, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	for deadline := time.Now().Add(20 * time.Second); isAlive(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the child lives on")
		}
	}
}

// isAlive is false for a process that has ended, also where its new parent has not asked for its end yet.
func isAlive(pid int) bool {
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, state, _ := strings.Cut(string(text), ") ")
		return !strings.HasPrefix(state, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}

const harmPrefix = "HARM:"

func init() {
	sound := parsers[Text]
	parsers[Text] = func(in io.ReaderAt, size int64, limits Limits, put emit) error {
		b := make([]byte, min(size, 100))
		_, _ = in.ReadAt(b, 0)
		harm, ok := strings.CutPrefix(string(b), harmPrefix)
		if !ok || os.Getenv(ChildVariable) == "" {
			return sound(in, size, limits, put)
		}
		switch harm {
		case "memory":
			for all := [][]byte{}; ; all = append(all, bytes.Repeat([]byte{1}, 1<<20)) {
			}
		case "noise":
			for {
				fmt.Println(strings.Repeat(`{"page":{"number":1,"text":"x"}}`, 100))
			}
		case "self":
			if err := put("", fmt.Sprint(os.Getpid())); err != nil {
				return err
			}
			select {}
		default:
			select {}
		}
	}
}

// Limits cut a document, and lose none of the pages before.
func TestLimitsCut(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("一二三四五六七八九十\n", 2000))
	limits := DefaultLimits
	limits.Pages = 3
	if pages, cut, err := read(text, limits); err != nil || !cut || len(pages) != 3 {
		t.Errorf("%d pages, cut %t, %v", len(pages), cut, err)
	}
	limits = DefaultLimits
	limits.Text = 5000
	pages, cut, err := read(text, limits)
	total := 0
	for _, p := range pages {
		total += len(p.Text)
	}
	if err != nil || !cut || total > 5000 || total < 4990 {
		t.Errorf("%d bytes, cut %t, %v", total, cut, err)
	}
}

// The pages of a text are the text, whatever its lines are, and cut no character.
func TestPagesAreTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringOfN(rapid.RuneFrom([]rune("a一🎉é ")), 1, 4000, -1)
		text := strings.Join(rapid.SliceOfN(line, 1, 8).Draw(t, "lines"), "\n")
		if strings.TrimSpace(text) == "" {
			return
		}
		pages, cut, err := read([]byte(text), DefaultLimits)
		if err != nil || cut {
			t.Fatalf("cut %t, %v", cut, err)
		}
		var all strings.Builder
		for _, p := range pages {
			if !utf8.ValidString(p.Text) || strings.ContainsRune(p.Text, utf8.RuneError) {
				t.Fatalf("page %d cuts a character", p.Number)
			}
			all.WriteString(p.Text)
		}
		if got, want := strings.Join(strings.Fields(all.String()), ""), strings.Join(strings.Fields(text), ""); got != want {
			t.Fatalf("%d bytes became %d", len(want), len(got))
		}
	})
}
