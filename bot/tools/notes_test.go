package tools_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/tools"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

func TestMain(m *testing.M) { sqltest.Main(m) }

// callRE finds the calls that a text names.
var callRE = regexp.MustCompile(`(query_history|memory_get) (\{[^{}]*\})`)

// room is a conversation in PostgreSQL with the tools that its model has.
type room struct {
	*testing.T
	store  *sql.Store
	lease  sessions.Lease
	events []sessions.Event // by place, from 0
	bytes  int              // that a result may have
}

const (
	roomRobot = sessions.RobotCode("robot")
	roomChat  = sessions.ConversationID("cid")
)

// newRoom is a conversation with messages, long messages in several languages, and tool results.
func newRoom(t *testing.T) *room {
	t.Helper()
	store, err := sql.Open(t.Context(), sql.Options{URL: sqltest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	if _, err := store.Leases.Beat(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	r := &room{T: t, store: store}
	for i := range 12 {
		text := fmt.Sprintf("message %d: the plan\nof line two", i)
		switch i {
		case 3:
			text = "开头。" + strings.Repeat("很长的一段话，没有换行。", 200) + "暗号在末尾 zebra"
		case 5:
			text = "start " + strings.Repeat("words in lines\n", 450) + "ends with okapi"
		}
		r.turn(i, text, fmt.Sprintf("result %d\n", i)+strings.Repeat("row 0123456789 abcdef\n", 40*i))
	}
	return r
}

// turn is a message, a call with its result, and an answer.
func (r *room) turn(i int, text, result string) {
	r.Helper()
	key := sessions.NewKey(roomRobot, roomChat, "")
	m := sessions.Message{
		RobotCode: roomRobot, ConversationID: roomChat, ConversationType: sessions.Group,
		ID: sessions.MessageID(fmt.Sprint("m", i)), SenderID: "u1", SenderNick: "Alice", Text: text,
	}
	if i == 2 {
		m.Attachments = slices.Repeat([]sessions.Attachment{{Kind: "picture"}}, 4)
	}
	a, err := r.store.Inbox.Accept(r.Context(), "a", key, m)
	if err != nil {
		r.Fatal(err)
	}
	r.lease = a.Lease
	answer := []sessions.Event{
		{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "disk_usage", Arguments: `{"path":"/"}`}}, Tokens: 9},
		{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "disk_usage", Content: result, Tokens: len(result) / 2},
		{Role: sessions.RoleAssistant, Content: fmt.Sprint("answer ", i), Tokens: 3},
	}
	if _, err := r.store.Turns.Commit(r.Context(), r.lease, sessions.TurnResult{
		Taken: []int64{a.EventID}, TakenTokens: []int{len(text) / 2}, Events: answer,
	}); err != nil {
		r.Fatal(err)
	}
	all, err := r.store.Search.Range(r.Context(), key, int64(len(r.events)), 1<<40, 100)
	if err != nil {
		r.Fatal(err)
	}
	r.events = append(r.events, all...)
}

// call calls a tool as the model would, and fails the test where the result is too long to be shown whole.
func (r *room) call(name, arguments string) string {
	r.Helper()
	return r.callIn(name, chat.ToolInput{Arguments: arguments})
}

func (r *room) callIn(name string, in chat.ToolInput) string {
	r.Helper()
	arguments := in.Arguments
	in.Lease, in.Room, in.Reader = r.lease, r.bytes, memory.Reader{Key: r.lease.Key, Robot: roomRobot, Conversation: roomChat}
	for _, tool := range tools.All(partsOf(r.store), time.UTC) {
		if tool.Spec().Name != name {
			continue
		}
		var given map[string]any
		if err := json.Unmarshal([]byte(arguments), &given); err != nil {
			r.Fatalf("a note names the call %s %s: %v", name, arguments, err)
		}
		for argument := range given {
			if tool.Spec().Schema["properties"].(map[string]any)[argument] == nil {
				r.Errorf("%s has no argument %q, which a note names", name, argument)
			}
		}
		out, err := tool.Call(r.Context(), in)
		if err != nil {
			r.Fatalf("%s %s: %v", name, arguments, err)
		}
		if r.bytes > 0 && len(out) > r.bytes {
			r.Errorf("%s %s gives %d bytes, where there is room for %d", name, arguments, len(out), r.bytes)
		}
		return out
	}
	r.Fatalf("no tool %s", name)
	return ""
}

// follow does what a note says, page by page, and returns all that it read, without the lines that name pages.
func (r *room) follow(note string) string {
	r.Helper()
	calls := callRE.FindAllStringSubmatch(note, -1)
	if len(calls) == 0 {
		r.Fatalf("no call is named: %.300q", note)
	}
	text := ""
	for range 400 {
		c := calls[0]
		out := r.call(c[1], c[2])
		head, rest, _ := strings.Cut(out, "\n")
		if !strings.HasPrefix(head, "page ") && !strings.HasPrefix(head, "event") {
			return text + out
		}
		text += rest
		if calls = callRE.FindAllStringSubmatch(head, -1); len(calls) == 0 {
			return text
		}
	}
	r.Fatalf("no end to what this names: %.300q", note)
	return ""
}

// holds fails the test unless a text has the events whole.
func (r *room) holds(what, text string, events ...sessions.Event) {
	r.Helper()
	for _, e := range events {
		if !strings.Contains(text, e.Content) {
			r.Errorf("%s: event %d of %d bytes is not read whole", what, e.Seq, len(e.Content))
		}
	}
}

// Every note that sends the model to the log is true: what it names can be called, and gives the originals whole.
func TestNotesAreTrue(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{0, 900} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			r.bytes = bytes
			r.notesOfViews()
			r.notesOfResults()
			r.notesOfMemory()
			r.notesOfFiles()
		})
	}
}

// notesOfViews are those for events that a view leaves out or shortens.
func (r *room) notesOfViews() {
	for _, lang := range []string{"zh", "en"} {
		r.holds("gap "+lang, r.follow(summarize.GapNote(r.events[4:26], nil, lang, 8)), r.events[4:26]...)
		r.holds("gap of one "+lang, r.follow(summarize.GapNote(r.events[12:13], nil, lang, 8)), r.events[12])
		engine := summarize.Engine{Summarizer: &summarize.Summarizer{Counter: counter(r.T), Language: lang}}
		task := summarize.Task{Events: r.events[40:44], From: 40, Through: 44}
		hidden := engine.WriteNote(task).Summaries
		r.holds("hidden "+lang, r.follow(hidden[len(hidden)-1].Text), r.events[40:44]...)
		for i := range int64(9) {
			note := summarize.GapNote(r.events[4*i:4*i+4], nil, lang, 24)
			task.Active = append(task.Active, sessions.Summary{StartSeq: 4*i + 1, EndSeq: 4*i + 4, Text: note + strings.Repeat("…", 300)})
		}
		task.From = 36
		joined := engine.WriteNote(task).Summaries[0].Text
		_, cut, ok := strings.Cut(joined, "bytes left out; whole: ")
		if !ok {
			r.Fatalf("joined notes name no call: %.300q", joined)
		}
		r.holds("joined notes "+lang, r.follow(cut), r.events[:36]...)
	}
	long := r.events[12]
	r.holds("shortened", r.follow(tokens.Shorten(long.Content, 1000, sessions.ReadCall(long.Seq))), long)
	for _, e := range r.events {
		if got := r.follow(sessions.ReadCall(e.Seq)); !strings.Contains(got, e.Content) {
			r.Errorf("event %d is not read whole", e.Seq)
		}
	}
}

// notesOfResults are those for tool results that were shortened or moved out.
func (r *room) notesOfResults() {
	count := counter(r.T).Count
	pruned := compaction.Policies["balanced"].Prune(r.events, count)
	if len(pruned) < 5 {
		r.Fatalf("only %d results were shortened", len(pruned))
	}
	for _, s := range pruned {
		r.holds("pruned", r.follow(s.Text), r.events[s.Seq-1])
	}
	p := compaction.Policies["offload"]
	w := compaction.Window{Context: 30000, Reserve: 1000, Threshold: 10000, Share: 0.5, FlushRatio: 0.9}
	shown, _ := p.Offload(w, compaction.State{Tail: r.events, Tokens: 20000}, count)
	if len(shown) < 3 {
		r.Fatalf("only %d results were moved out", len(shown))
	}
	if _, err := r.store.Compactions.Compact(r.Context(), r.lease, sessions.Compaction{Shown: shown, Log: sessions.LogEntry{Outcome: "committed"}}); err != nil {
		r.Fatal(err)
	}
	for _, s := range shown {
		if got := r.follow(s.Text); got != r.events[s.Seq-1].Content {
			r.Errorf("the result of event %d, moved out, reads %d bytes of %d", s.Seq, len(got), len(r.events[s.Seq-1].Content))
		}
		r.holds("moved out", r.follow(sessions.ReadCall(s.Seq)), r.events[s.Seq-1])
	}
	gone := r.call("memory_get", `{"path":"`+sessions.BlobPath(sessions.BlobOf("never stored"))+`"}`)
	if !strings.HasPrefix(gone, "[Content unavailable") {
		r.Errorf("what is not stored reads %q", gone)
	}
}

// notesOfMemory are the paths of finds, and the list of finds of a long log.
func (r *room) notesOfMemory() {
	fact := memory.Draft{Scope: memory.ScopeGroup, ScopeID: memory.GroupID(roomRobot, roomChat), Kind: memory.KindFact, Content: "The mascot is a quokka", StartSeq: 13, EndSeq: 13}
	if _, err := r.store.Facts.Save(r.Context(), r.lease, []memory.Draft{fact}); err != nil {
		r.Fatal(err)
	}
	paths := regexp.MustCompile(`session_events/\d+|memory/group/\S+\.md#\d+`)
	for query, want := range map[string]string{"zebra": r.events[12].Content, "okapi": r.events[20].Content, "quokka": "The mascot is a quokka"} {
		found := r.call("memory_search", `{"query":"`+query+`"}`)
		path := paths.FindString(found)
		if path == "" {
			r.Fatalf("%s finds %q", query, found)
		}
		if got := r.follow(show.CallOf(sessions.GetTool, "path", path)); !strings.Contains(got, want) {
			r.Errorf("the find of %s is not read whole", query)
		}
	}
	for query, want := range map[string]sessions.Event{"zebra": r.events[12], "okapi": r.events[20]} {
		found := r.call("query_history", `{"query":"`+query+`"}`)
		if !strings.Contains(found, query) {
			r.Errorf("the list for %s does not show it: %q", query, found)
		}
		if _, after, ok := strings.Cut(found, "[whole: "); !ok {
			r.Errorf("the list for %s names no call for the whole: %q", query, found)
		} else {
			r.holds("list", r.follow(after), want)
		}
	}
	value := r.call("memory_get", `{"path":"`+paths.FindString(r.call("memory_search", `{"query":"quokka"}`))+`"}`)
	if from := paths.FindString(value); from != "session_events/13" {
		r.Errorf("a memory names its source as %q", value)
	} else {
		r.holds("source", r.follow(show.CallOf(sessions.GetTool, "path", from)), r.events[12])
	}
	r.listsGoOn()
}

// notesOfFiles are those for documents that a request does not show whole.
func (r *room) notesOfFiles() {
	asked := r.events[4].ID
	pages := []sessions.MediaPage{{Number: 1, Text: "the first page"}, {Number: 2, Text: "an axolotl lives here"}}
	file := sessions.Media{Event: asked, Kind: "docx", Name: "handbook.docx", ID: "hash", Bytes: 9, Pages: 2, Tokens: 99_999}
	if err := r.store.Media.Keep(r.Context(), r.lease, file, pages); err != nil {
		r.Fatal(err)
	}
	note := callRE.FindStringSubmatch(view.MediaNote(file, 9))
	if note == nil {
		r.Fatalf("%q names no call for a page", view.MediaNote(file, 9))
	}
	for page, want := range map[string]string{"1": "the first page", "2": "axolotl", "3": "no text"} {
		if got := r.call(note[1], strings.ReplaceAll(note[2], "N}", page+"}")); !strings.Contains(got, want) {
			r.Errorf("page %s of the file is %q", page, got)
		}
	}
	r.notesOfPictures()
}

// notesOfPictures are those for pictures that a request shows no more: the call brings each back, once, or says why not.
func (r *room) notesOfPictures() {
	asked := r.events[8]
	set := func(m sessions.Media) {
		r.Helper()
		if m.Event = asked.ID; m.Fault == "" {
			m.ID = fmt.Sprint("picture", m.Place%2) // two are the same
		}
		if err := r.store.Media.Keep(r.Context(), r.lease, m, nil); err != nil {
			r.Fatal(err)
		}
	}
	set(sessions.Media{Place: 0, Kind: sessions.MediaPicture, Picture: &sessions.Picture{Type: "image/png", Body: []byte("png")}})
	set(sessions.Media{Place: 1, Kind: sessions.MediaPicture})
	set(sessions.Media{Place: 2, Kind: sessions.MediaPicture})
	set(sessions.Media{Place: 3, Fault: sessions.MediaExpired})
	note := callRE.FindStringSubmatch(view.MediaNote(sessions.Media{Kind: sessions.MediaPicture}, asked.Seq))
	if note == nil {
		r.Fatal("a picture that is not shown names no call")
	}
	var shown []sessions.Media
	got := r.callIn(note[1], chat.ToolInput{Arguments: note[2], Show: func(m sessions.Media) bool { shown = append(shown, m); return true }})
	if len(shown) != 1 || string(shown[0].Picture.Body) != "png" {
		r.Errorf("%d pictures are shown: %s", len(shown), got)
	}
	for want, times := range map[string]int{"shown in the next message": 2, "not kept any more": 1, "could not be read (expired)": 1} {
		if n := strings.Count(got, want); n != times {
			r.Errorf("the result says %q %d times, want %d: %s", want, n, times, got)
		}
	}
	if got := r.callIn(note[1], chat.ToolInput{Arguments: note[2], Show: func(sessions.Media) bool { return false }}); strings.Contains(got, "shown in the next message") {
		r.Errorf("without room the result is %s", got)
	}
}

// listsGoOn follows a list of all messages to its end: each is named once.
func (r *room) listsGoOn() {
	seen := map[string]int{}
	next := `{"query":"","limit":7}`
	for range 400 {
		out := r.call("query_history", next)
		for _, m := range regexp.MustCompile(`(?m)^#(\d+) \d{4}-`).FindAllStringSubmatch(out, -1) {
			seen[m[1]]++
		}
		_, older, more := strings.Cut(strings.SplitN(out, "\n", 2)[0], "older ones: ")
		if !more {
			break
		}
		next = callRE.FindStringSubmatch(older)[2]
	}
	if len(seen) != len(r.events) {
		r.Errorf("a list names %d of %d events", len(seen), len(r.events))
	}
	for seq, n := range seen {
		if n != 1 {
			r.Errorf("a list names event %s %d times", seq, n)
		}
	}
}

func counter(t *testing.T) *tokens.Counter {
	t.Helper()
	c, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// noted are the functions that write the name of a reading tool for the model. A new one belongs into TestNotesAreTrue,
// or is named here with the reason.
var noted = map[string]string{
	"summarize.readCall":          "gap notes",
	"compaction.pruneNote":        "notesOfResults",
	"compaction.referenceText":    "notesOfResults",
	"summarize.WriteNote":         "joined notes",
	"compaction.readsResults":     "no text",
	"upkeep.missingNote":          "a call of ReadCallOf, as in gap notes",
	"answer.makeRoom":             "no text: it writes compaction.Reference, of notesOfResults",
	"view.MediaNote":              "notesOfFiles",
	"tools.errFiles":              "errors of the storage",
	"view.shrink":                 "shortened; its number: TestHugeToolResult",
	"show.callGet":                "pages",
	"sessions.BlobCall":           "offloaded",
	"sessions.ReadCall":           "pruned",
	"sessions.ReadCallOf":         "gap notes",
	"tools.blob":                  "pages",
	"tools.showAttachment":        "notesOfPictures",
	"summarize.attachmentSection": "TestAttachmentsStayInSummaries; its call has a number to fill in",
	"tools.call":                  "pages and lists; errors of the storage",
	"sessions.HistoryTool":        "the name",
	"sessions.GetTool":            "the name",
	"tools.historySpec":           "the name",
	"tools.getSpec":               "the name",
	"openaitest.wanted":           "a simulator",
	"openaitest.lookFor":          "a simulator",
	"openaitest.cite":             "a simulator",
}

// A note that no test calls can't be added unseen.
func TestEveryNoteIsKnown(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	names := []string{"ReadCall", "ReadCallOf", "BlobCall", "HistoryTool", "GetTool"}
	for _, dir := range []string{"../../bot", "../../compaction", "../../memory", "../../sessions", "../../sql"} {
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, decl := range file.Decls {
				if name, ok := mentions(decl, names); ok {
					found[file.Name.Name+"."+name] = true
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if noted[name] == "" {
			t.Errorf("%s names a reading tool for the model: call what it says in TestNotesAreTrue", name)
		}
	}
	for name := range noted {
		if !found[name] {
			t.Errorf("%s names no reading tool any more", name)
		}
	}
	prompt, err := os.ReadFile("../view/prompts/system.md")
	if err != nil || strings.Count(string(prompt), "query_history") != 2 {
		t.Errorf("the prompt sends the model to query_history in both languages: %v", err)
	}
}

// mentions reports whether a declaration uses one of the names, or writes the name of a reading tool.
func mentions(decl ast.Decl, names []string) (name string, found bool) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		name = d.Name.Name
	case *ast.GenDecl:
		if len(d.Specs) > 0 {
			if v, ok := d.Specs[0].(*ast.ValueSpec); ok {
				name = v.Names[0].Name
			}
		}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			found = found || slices.Contains(names, n.Name)
		case *ast.BasicLit:
			found = found || n.Kind == token.STRING && (strings.Contains(n.Value, "query_history") || strings.Contains(n.Value, "memory_get"))
		}
		return true
	})
	return name, found
}
