package eval

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ebb/cmd/lab/local"
	"ebb/cmd/lab/rig"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/localpg"
	"ebb/sql/yardstick"
)

// Command is lab eval. It needs no configuration, and uses only its own temporary database.
type Command struct {
	Data string `required:"" placeholder:"DIR" help:"A folder with *.docs.jsonl and *.queries.jsonl."`
	Out  string `required:"" placeholder:"RUN" help:"The file to write: a line for each query, with the ids of what was found, best first."`
}

const evalFinds = 20

// evalDoc is a line of *.docs.jsonl: a message of a conversation, or a memory of it.
type evalDoc struct {
	Conv    string `json:"conv"`
	ID      string `json:"id"`
	Speaker string `json:"speaker"`
	Role    string `json:"role"` // assistant is the bot, memory a memory, any other value a person
	Time    string `json:"ts"`
	Text    string `json:"text"`
}

type evalQuery struct {
	Conv string `json:"conv"`
	ID   string `json:"qid"`
	Text string `json:"query"`
	set  string
}

// Run loads each conversation as a session, searches as the tool does, and writes the results.
func (c Command) Run(ctx context.Context, app *rig.App) (err error) {
	talks, queries, err := readEval(c.Data)
	if err == nil {
		err = checkOut(c.Data, c.Out)
	}
	if err != nil {
		return rig.UsageError(err)
	}
	out, err := os.Create(c.Out)
	if err != nil {
		return rig.UsageError(err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	dir, err := local.MakeTempDir("ebb-eval-")
	var private *localpg.Server
	defer func() { err = errors.Join(err, local.RemoveServer(ctx, private, dir)) }()
	if err != nil {
		return err
	}
	if private, err = local.StartServer(ctx, dir, true); err != nil {
		return err
	}
	s, err := sql.Open(ctx, sql.Options{URL: private.URL(), MaxConns: 4})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := talks.loadTalk(ctx, private.URL()); err != nil {
		return err
	}
	rows, err := talks.askQuery(ctx, s, queries, bufio.NewWriter(out))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(app.Stdout, rig.FormatTable(rows))
	return err
}

type evalTalk struct {
	name     string
	reader   memory.Reader
	events   []sessions.Event
	ids      []string // the events' documents
	memories []memory.Memory
}

type evalTalks struct {
	list     []*evalTalk
	byName   map[string]*evalTalk
	memories [][]string       // documents by the memory's id, from 1 on
	same     map[string]int64 // by conversation and words, since a fact is stored once
	docs     map[string]int
}

const evalRobot sessions.RobotCode = "eval"

func (t *evalTalks) addLine(set string, d evalDoc) error {
	at, err := evalTime(d.Time)
	switch {
	case d.Conv == "" || d.ID == "":
		return errors.New("got no conv or no id, want an object with conv, id, text")
	case strings.TrimSpace(d.Text) == "":
		return errors.New("got no text, want an object with conv, id, text")
	case err != nil:
		return err
	}
	talk, known := t.byName[d.Conv]
	if !known {
		conversation := sessions.ConversationID(d.Conv)
		talk = &evalTalk{name: d.Conv, reader: memory.Reader{
			Key: sessions.NewKey(evalRobot, conversation, ""), Robot: evalRobot, Conversation: conversation,
		}}
		t.byName[d.Conv] = talk
		t.list = append(t.list, talk)
	}
	t.docs[set]++
	if d.Role == "memory" {
		words := d.Conv + "\x00" + yardstick.FactText(d.Text)
		if id := t.same[words]; id > 0 {
			t.memories[id-1] = append(t.memories[id-1], d.ID)
			return nil
		}
		t.memories = append(t.memories, []string{d.ID})
		t.same[words] = int64(len(t.memories))
		talk.memories = append(talk.memories, memory.Memory{
			ID: int64(len(t.memories)), Scope: memory.ScopeGroup, ScopeID: memory.GroupID(evalRobot, talk.reader.Conversation),
			Kind: memory.KindFact, Content: d.Text, SubjectID: sessions.UserID(d.Speaker), SourceSession: talk.reader.Key, CreatedAt: at,
		})
		return nil
	}
	e := sessions.Event{Seq: int64(len(talk.events) + 1), Role: sessions.RoleUser, Content: d.Text, CreatedAt: at}
	if d.Role == string(sessions.RoleAssistant) {
		e.Role = sessions.RoleAssistant
	} else {
		e.SenderID, e.SenderNick = sessions.UserID(d.Speaker), d.Speaker
	}
	talk.events, talk.ids = append(talk.events, e), append(talk.ids, d.ID)
	return nil
}

// A time without a zone is UTC.
func evalTime(text string) (time.Time, error) {
	if text == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("ts %q is no time such as 2026-01-31T08:30:00", text)
}

// Each conversation becomes a session.
func (t *evalTalks) loadTalk(ctx context.Context, url string) error {
	l, err := yardstick.OpenLoader(ctx, url)
	if err != nil {
		return err
	}
	defer l.Close()
	var all []sessions.Session
	var memories []memory.Memory
	for _, talk := range t.list {
		all = append(all, sessions.Session{
			Key: talk.reader.Key, RobotCode: evalRobot, ConversationID: talk.reader.Conversation, ConversationType: sessions.Group,
			LastSeq: int64(len(talk.events)),
		})
		memories = append(memories, talk.memories...)
	}
	if err := l.LoadSessions(ctx, all); err != nil {
		return err
	}
	if err := l.LoadEvents(ctx, func(yield func(yardstick.LoadedEvent) bool) {
		for _, talk := range t.list {
			for _, e := range talk.events {
				if !yield(yardstick.LoadedEvent{Key: talk.reader.Key, Event: e}) {
					return
				}
			}
		}
	}); err != nil {
		return err
	}
	if err := l.LoadMemories(ctx, memories); err != nil {
		return err
	}
	return l.LoadEnd(ctx)
}

type evalLine struct {
	ID   string   `json:"qid"`
	Docs []string `json:"docs"`
	MS   float64  `json:"ms"`
}

// askQuery writes the results and returns the rows of a table.
func (t *evalTalks) askQuery(ctx context.Context, s *sql.Store, queries []evalQuery, out *bufio.Writer) ([][]string, error) {
	took := make(map[string][]time.Duration)
	empty := make(map[string]int)
	var sets []string
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, q := range queries {
		talk := t.byName[q.Conv]
		began := time.Now()
		hits, err := s.Search.Search(ctx, talk.reader, memory.Query{Text: q.Text, Limit: evalFinds})
		if err != nil {
			return nil, fmt.Errorf("searching for query %s: %w", q.ID, err)
		}
		passed := time.Since(began)
		line := evalLine{ID: q.ID, Docs: []string{}, MS: float64(passed.Microseconds()) / 1000}
		for _, h := range hits {
			if h.MemoryID > 0 {
				line.Docs = append(line.Docs, t.memories[h.MemoryID-1]...)
			} else {
				line.Docs = append(line.Docs, talk.ids[h.Seq-1])
			}
		}
		line.Docs = line.Docs[:min(len(line.Docs), evalFinds)] // a memory stands for each document that says it
		if err := lines.Encode(line); err != nil {
			return nil, fmt.Errorf("writing the run: %w", err)
		}
		if !slices.Contains(sets, q.set) {
			sets = append(sets, q.set)
		}
		took[q.set] = append(took[q.set], passed)
		if len(hits) == 0 {
			empty[q.set]++
		}
	}
	if err := out.Flush(); err != nil {
		return nil, fmt.Errorf("writing the run: %w", err)
	}
	rows := [][]string{{"set", "documents", "queries", "nothing found", "p50", "p95"}}
	for _, set := range sets {
		rows = append(rows, []string{
			set, fmt.Sprint(t.docs[set]), fmt.Sprint(len(took[set])), fmt.Sprint(empty[set]),
			rig.FormatMillis(rig.Median(took[set])), rig.FormatMillis(rig.Quantile(took[set], 0.95)),
		})
	}
	return rows, nil
}
