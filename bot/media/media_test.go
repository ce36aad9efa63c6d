package media

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"ebb/bot/chat"
	"ebb/bot/media/document"
	"ebb/sessions"
)

// shelf is a store in memory.
type shelf struct {
	mu     sync.Mutex
	rows   map[attachmentPlace]sessions.Media
	pics   map[string]sessions.Picture
	pages  map[string][]sessions.MediaPage
	reads  int
	failed error
}

func newShelf() *shelf {
	return &shelf{rows: map[attachmentPlace]sessions.Media{}, pics: map[string]sessions.Picture{}, pages: map[string][]sessions.MediaPage{}}
}

func (s *shelf) Attachments(_ context.Context, _ sessions.Key, events []int64) (list []sessions.Media, err error) {
	s.reads++
	for _, at := range slices.SortedFunc(maps.Keys(s.rows), func(a, b attachmentPlace) int { return cmp.Or(cmp.Compare(a.event, b.event), a.place-b.place) }) {
		if slices.Contains(events, at.event) {
			list = append(list, s.rows[at])
		}
	}
	return list, s.failed
}

func (s *shelf) Pictures(_ context.Context, _ sessions.Key, ids []string) (map[string]sessions.Picture, error) {
	found := map[string]sessions.Picture{}
	for _, id := range ids {
		if p, ok := s.pics[id]; ok {
			found[id] = p
		}
	}
	return found, nil
}

func (s *shelf) Pages(_ context.Context, _ sessions.Key, id string, from, through int) (list []sessions.MediaPage, err error) {
	for _, p := range s.pages[id] {
		if p.Number >= from && p.Number <= through {
			list = append(list, p)
		}
	}
	return list, nil
}

func (s *shelf) Keep(_ context.Context, _ sessions.Lease, m sessions.Media, pages []sessions.MediaPage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Picture != nil {
		s.pics[m.ID] = *m.Picture
		m.Picture = nil
	}
	if len(pages) > 0 {
		s.pages[m.ID] = pages
	}
	s.rows[attachmentPlace{m.Event, m.Place}] = m
	return s.failed
}

// platform has files by code. A code without a file has expired.
type platform struct {
	files map[string]string
	fault map[string]sessions.MediaFault
	calls []string
}

func (p *platform) Download(_ context.Context, _ sessions.RobotCode, a sessions.Attachment, to *os.File, limit int64) error {
	p.calls = append(p.calls, a.Code)
	text, ok := p.files[a.Code]
	switch fault := p.fault[a.Code]; {
	case fault != "":
		return &chat.FileError{Fault: fault, Err: io.EOF}
	case !ok:
		return &chat.FileError{Fault: sessions.MediaExpired, Err: io.EOF}
	case int64(len(text)) > limit:
		return &chat.FileError{Fault: sessions.MediaTooLarge, Err: io.EOF}
	}
	_, err := to.WriteString(text)
	return err
}

// parser takes a file that begins with a picture's name for one, and any other for pages between form feeds.
type parser struct{}

func (parser) Read(_ context.Context, file *os.File, page func(document.Page) error) (document.Content, error) {
	b, err := io.ReadAll(file)
	if err != nil {
		return document.Content{}, err
	}
	if text := string(b); text == "broken" {
		return document.Content{}, &document.Fault{Reason: document.Broken, Kind: document.PDF}
	} else if strings.HasPrefix(text, "picture") {
		return document.Content{Kind: document.Picture, Picture: &document.Scaled{Type: "image/png", Width: 280, Height: 140, Body: b}}, nil
	}
	pages := strings.Split(string(b), "\f")
	for i, text := range pages {
		if err := page(document.Page{Number: i + 1, Text: text}); err != nil {
			return document.Content{}, err
		}
	}
	return document.Content{Kind: document.DOCX, Pages: len(pages)}, nil
}

func desk(p *platform) (*Reader, *shelf) {
	s := newShelf()
	return New(Config{Store: s, Files: p, Parser: parser{}, MaxFile: func() int64 { return 1 << 20 }, Count: func(text string) int { return len([]rune(text)) }}), s
}

func message(id int64, list ...sessions.Attachment) sessions.Event {
	return sessions.Event{ID: id, Role: sessions.RoleUser, Content: "看", Message: &sessions.Message{Attachments: list}}
}

// Each attachment is downloaded once, and those that a later try can have are tried again. A message without any costs no statement.
func TestAttachmentsAreFetchedOnce(t *testing.T) {
	t.Parallel()
	p := &platform{files: map[string]string{"a": "picture 1", "b": "第一页\f第二页", "c": "broken"}, fault: map[string]sessions.MediaFault{"d": sessions.MediaUnavailable}}
	r, s := desk(p)
	if err := errors.Join(r.Fetch(t.Context(), sessions.Lease{}, []sessions.Event{message(1)}), r.Show(t.Context(), "k", "", []sessions.Event{message(1)})); err != nil || s.reads != 0 {
		t.Fatalf("%d reads for a message without attachments, %v", s.reads, err)
	}
	events := []sessions.Event{message(2, sessions.Attachment{Kind: "picture", Code: "a"}, sessions.Attachment{Kind: "file", Code: "b", Name: "甲.docx"}, sessions.Attachment{Kind: "audio", Code: "x"}),
		message(3, sessions.Attachment{Kind: "file", Code: "c"}, sessions.Attachment{Kind: "file", Code: "d"}, sessions.Attachment{Kind: "file", Code: "old"})}
	for range 2 {
		if err := r.Fetch(t.Context(), sessions.Lease{}, events); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"a", "b", "c", "d", "old", "d"}; !slices.Equal(p.calls, want) {
		t.Errorf("downloads %v, want %v", p.calls, want)
	}
	delete(p.fault, "d")
	p.files["d"] = "再次"
	if err := errors.Join(r.Fetch(t.Context(), sessions.Lease{}, events), r.Show(t.Context(), "k", "", events)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		for _, m := range e.Media {
			got = append(got, fmt.Sprintf("%d %s %t %s", m.Place, m.Fault, m.Picture != nil, m.Text))
		}
	}
	if want := []string{"0  true ", "1  false [第 1 页 page 1]\n第一页\n[第 2 页 page 2]\n第二页", "0 broken false ", "1  false 再次", "2 expired false "}; !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
	s.failed = errors.New("no storage")
	if err := r.Fetch(t.Context(), sessions.Lease{}, []sessions.Event{message(9, sessions.Attachment{Kind: "picture", Code: "a"})}); !errors.Is(err, s.failed) {
		t.Errorf("a storage that fails: %v", err)
	}
}

// countingParser counts the files that it reads.
type countingParser struct {
	parser
	read *int
}

func (c countingParser) Read(ctx context.Context, file *os.File, page func(document.Page) error) (document.Content, error) {
	*c.read++
	return c.parser.Read(ctx, file, page)
}

// An equal file of the same turn is parsed once, and each message has it.
func TestEqualFilesAreParsedOnce(t *testing.T) {
	t.Parallel()
	p := &platform{files: map[string]string{"a": "picture 1", "b": "picture 1", "c": "一\f二", "d": "一\f二"}}
	r, _ := desk(p)
	n := 0
	r.cfg.Parser = countingParser{read: &n}
	events := []sessions.Event{message(1, sessions.Attachment{Kind: "picture", Code: "a"}, sessions.Attachment{Kind: "file", Code: "c"}),
		message(2, sessions.Attachment{Kind: "picture", Code: "b"}, sessions.Attachment{Kind: "file", Code: "d"})}
	if err := errors.Join(r.Fetch(t.Context(), sessions.Lease{}, events), r.Show(t.Context(), "k", "", events)); err != nil || n != 2 || len(p.calls) != 4 {
		t.Fatalf("%d files were parsed, %d downloaded, %v", n, len(p.calls), err)
	}
	for _, e := range events {
		if m := e.Media; len(m) != 2 || m[0].Picture == nil || m[0].Tokens == 0 || m[1].Pages != 2 || !strings.Contains(m[1].Text, "二") {
			t.Errorf("message %d has %+v", e.ID, m)
		}
	}
}

// A quote of a message in the log has that message's files without a download. One that is not in the log has its own, and one whose code
// has expired has the log's.
func TestQuotesHaveFiles(t *testing.T) {
	t.Parallel()
	p := &platform{files: map[string]string{"a": "picture 1", "q": "picture 2"}}
	r, _ := desk(p)
	first := message(1, sessions.Attachment{Kind: "picture", Code: "a"})
	known, other, bare := message(2, sessions.Attachment{Kind: "picture", Code: "gone", Quoted: true}), message(3, sessions.Attachment{Kind: "picture", Code: "q", Quoted: true}), message(4)
	known.Message.Quote, other.Message.Quote, bare.Message.Quote = &sessions.Quote{Event: 1}, &sessions.Quote{}, &sessions.Quote{Event: 1}
	events := []sessions.Event{known, other, bare}
	err := errors.Join(r.Fetch(t.Context(), sessions.Lease{}, []sessions.Event{first}), r.Fetch(t.Context(), sessions.Lease{}, events), r.Show(t.Context(), "k", "", events))
	if err != nil || !slices.Equal(p.calls, []string{"a", "q"}) {
		t.Fatalf("downloads %v, %v", p.calls, err)
	}
	for i, want := range []string{"picture 1", "picture 2", "picture 1"} {
		if m := events[i].Media; len(m) != 1 || !m[0].Quoted || m[0].Picture == nil || string(m[0].Picture.Body) != want {
			t.Errorf("quote %d: %+v", i, m)
		}
	}
}

// A request has a bounded number of pictures. Half of them leave at once, so that its beginning stays the same for a while.
func TestPicturesAreBounded(t *testing.T) {
	t.Parallel()
	p := &platform{files: map[string]string{}}
	r, _ := desk(p)
	var events []sessions.Event
	for i := range 31 {
		code := fmt.Sprint("c", i)
		p.files[code] = "picture " + code
		events = append(events, message(int64(i+1), sessions.Attachment{Kind: "picture", Code: code}))
		view := slices.Clone(events)
		if err := errors.Join(r.Fetch(t.Context(), sessions.Lease{}, events[i:]), r.Show(t.Context(), "k", "", view)); err != nil {
			t.Fatal(err)
		}
		first, shown := -1, 0
		for j, e := range view {
			if e.Media[0].Picture != nil {
				first, shown = cmp.Or(first+1, j+1)-1, shown+1
			}
		}
		if most, least := maxPictures, min(i+1, maxPictures-maxPictures/2+1); shown > most || shown < least || first%(maxPictures/2) != 0 || view[i].Media[0].Picture == nil {
			t.Errorf("of %d pictures %d are shown, from %d on", i+1, shown, first)
		}
	}
}

// A question about a large document gets the page that it names, or the pages with its words, within its room.
func TestLargeDocumentsAreSearched(t *testing.T) {
	t.Parallel()
	pages := make([]string, 200)
	for i := range pages {
		pages[i] = strings.Repeat(fmt.Sprintf("本页说明设备维护的第 %d 个步骤。\n", i+1), 20)
	}
	pages[179] = "校准泵的压力阈值是 7.3 巴。" + pages[179]
	pages[76] += "蓝色阀门由李工负责。"
	r, s := desk(&platform{files: map[string]string{"h": strings.Join(pages, "\f")}})
	asked := []sessions.Event{message(1, sessions.Attachment{Kind: "file", Code: "h", Name: "手册.docx"})}
	if err := errors.Join(r.Fetch(t.Context(), sessions.Lease{}, asked), r.Show(t.Context(), "k", "", asked)); err != nil || !isLarge(asked[0].Media[0]) || asked[0].Media[0].Text != "" {
		t.Fatalf("%+v, %v", s.rows, err)
	}
	for _, c := range []struct {
		question, want string
		before         bool // the document is of an earlier message
	}{
		{"第180页写了什么", "7.3 巴", false}, {"what is on page 180?", "7.3 巴", false}, {"蓝色阀门归谁管", "[第 77 页 page 77]", false}, {"蓝色阀门归谁管", "李工", true},
		{"压力阈值是多少", "7.3 巴", true}, {"总结一下", "第 1 个步骤", false}, {"今天天气怎么样", "", true}, {"", "第 1 个步骤", false},
	} {
		before, now := []sessions.Event(nil), asked
		if c.before {
			before, now = asked, nil
		}
		got, err := r.Passages(t.Context(), "k", "", before, now, c.question, 1000)
		if err != nil || !strings.Contains(got, c.want) || c.want == "" && got != "" || len([]rune(got)) > 1000 || got != "" && !strings.HasPrefix(got, "手册.docx (200 页 pages):") {
			t.Errorf("%q: %d characters, %v: %.300s", c.question, len([]rune(got)), err, got)
		}
	}
}

// A page that a model refuses is a note in its requests. Others read it.
func TestRefusedPagesAreNotes(t *testing.T) {
	t.Parallel()
	r, s := desk(&platform{files: map[string]string{"a": "第一页\f第二页"}})
	events := []sessions.Event{message(1, sessions.Attachment{Kind: "file", Code: "a", Name: "甲.docx"})}
	if err := r.Fetch(t.Context(), sessions.Lease{}, events); err != nil {
		t.Fatal(err)
	}
	s.pages[s.rows[attachmentPlace{1, 0}].ID][1].Withheld = sessions.Withheld{"strict": {Parts: []sessions.WithheldPart{sessions.WithheldBody}}}
	for model, want := range map[sessions.ModelID]string{
		"strict": "[第 1 页 page 1]\n第一页\n[第 2 页 page 2]\n" + sessions.WithheldText,
		"other":  "[第 1 页 page 1]\n第一页\n[第 2 页 page 2]\n第二页",
	} {
		if err := r.Show(t.Context(), "k", model, events); err != nil || events[0].Media[0].Text != want {
			t.Errorf("%s: %v, %+v", model, err, events[0].Media)
		}
	}
}
