package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/rows"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/pages"
	"ebb/sessions"
)

func listMemories(w http.ResponseWriter, r *request) error {
	return showList(w, r, "memories", memoryFilter, func(f pages.MemoryFilter, p pages.Page) ([]memory.Memory, string, error) {
		return r.lists.Memories(r.Context(), f, p)
	})
}

func memoryFilter(text string) (pages.MemoryFilter, error) {
	p, err := parseFilter(text, "scope", "person", "session", "state")
	if err != nil {
		return pages.MemoryFilter{}, err
	}
	f := pages.MemoryFilter{Words: p.words}
	if f.Scope, err = p.one("scope", "user", "group", "team", "session"); err != nil {
		return f, err
	}
	person, err := p.one("person")
	if err != nil {
		return f, err
	}
	session, err := p.one("session")
	if err != nil {
		return f, err
	}
	state, err := p.one("state", "all")
	f.Person, f.Session, f.Every = sessions.UserID(person), sessions.Key(session), state == "all"
	return f, err
}

type memoryView struct {
	Memory memory.Memory
	Values []memory.Memory
}

func showMemory(w http.ResponseWriter, r *request) error {
	m, values, err := r.memory()
	if err != nil {
		return err
	}
	v := memoryView{m, values}
	key, private := memory.PrivateSource(v.Values)
	err = r.opened(private, key, "memory "+strconv.FormatInt(m.ID, 10), func(ctx context.Context, lists pages.Lists) (err error) {
		v.Memory, v.Values, err = lists.Memory(ctx, m.ID)
		return err
	})
	if err != nil {
		return err
	}
	return r.show(w, "memory", v)
}

// facts has the buttons of a memory.
type facts struct {
	manage interface {
		ForgetFact(ctx context.Context, by manage.Actor, id int64) (memory.Known, memory.Forgotten, error)
		Promote(ctx context.Context, by manage.Actor, id int64) (memory.Memory, error)
	}
}

func (f facts) forget(w http.ResponseWriter, r *request) error {
	m, _, err := r.memory()
	if err != nil {
		return err
	}
	if !r.whole() && m.Scope != memory.ScopeGroup && m.Scope != memory.ScopeSession {
		return errForbidden // other groups know a fact of the team or of a person
	}
	by := operator
	by.Asking.GroupOnly = !r.whole() // its erasure takes copies of the memory too
	err = r.audited("forget", m.SourceSession, "memory "+strconv.FormatInt(m.ID, 10), func(ctx context.Context) error {
		_, _, err := f.manage.ForgetFact(ctx, by, m.ID)
		if errors.Is(err, memory.ErrOthersKnow) {
			return errOthersKnow
		}
		return err
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/memories", http.StatusSeeOther)
	return nil
}

func (f facts) promote(w http.ResponseWriter, r *request) error {
	m, _, err := r.memory()
	if err != nil {
		return err
	}
	var shared memory.Memory
	err = r.audited("promote", m.SourceSession, "memory "+strconv.FormatInt(m.ID, 10), func(ctx context.Context) error {
		var err error
		shared, err = f.manage.Promote(ctx, r.operator(), m.ID)
		if _, ok := errors.AsType[manage.Refusal](err); ok {
			return badRequest{code: "error.promote"}
		}
		return err
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/memories/"+strconv.FormatInt(shared.ID, 10), http.StatusSeeOther)
	return nil
}

// people has the pages of people, over all groups.
type people struct {
	records interface {
		People(ctx context.Context, f pages.PeopleFilter, p pages.Page) (rows []pages.Speaker, next string, err error)
		CountConversations(ctx context.Context, person sessions.UserID) (pages.ConversationCount, error)
	}
	reads interface {
		IsKept(ctx context.Context, by manage.Actor, who sessions.UserID) error
		PreviewPerson(ctx context.Context, by manage.Actor, who sessions.UserID) (memory.Preview, error)
		Export(ctx context.Context, by manage.Actor, who sessions.UserID, to manage.Reader) error
	}
	manage interface {
		ForgetPerson(ctx context.Context, by manage.Actor, who sessions.UserID) (memory.Forgotten, error)
	}
	exports exports
}

type personView struct {
	ID      sessions.UserID
	Nick    string // empty for a role that does not act, as on the list of people
	Spoke   pages.ConversationCount
	Preview *memory.Preview // nil: not asked for, as it reads the logs of all their conversations
	Facts   []memory.Memory
}

func (p people) person(w http.ResponseWriter, r *request) error {
	id, err := r.text("id")
	if err != nil {
		return err
	}
	v := personView{ID: sessions.UserID(id)}
	if err := p.reads.IsKept(r.Context(), operator, v.ID); err != nil {
		return err
	}
	if v.Spoke, err = p.records.CountConversations(r.Context(), v.ID); err != nil {
		return err
	}
	if r.acts() {
		named, _, err := p.records.People(r.Context(), pages.PeopleFilter{Part: id, Names: true}, pages.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(named) > 0 && named[0].ID == v.ID {
			v.Nick = named[0].Nick
		}
	}
	if r.FormValue("preview") == "yes" {
		preview, err := p.reads.PreviewPerson(r.Context(), operator, v.ID)
		if err != nil {
			return err
		}
		v.Preview = &preview
	}
	if v.Facts, _, err = r.lists.Memories(r.Context(), pages.MemoryFilter{Person: v.ID}, pages.Page{Limit: listRows}); err != nil {
		return err
	}
	return r.show(w, "person", v)
}

func (p people) forget(w http.ResponseWriter, r *request) error {
	person, err := r.text("id")
	if err != nil {
		return err
	}
	id := sessions.UserID(person)
	err = r.auditedAs(pages.Action{Action: manage.ForgotPerson, Person: id}, func(ctx context.Context) error {
		_, err := p.manage.ForgetPerson(ctx, operator, id)
		if errors.Is(err, memory.ErrTooOften) {
			return badRequest{code: "error.too_often"}
		}
		return err
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/memories", http.StatusSeeOther)
	return nil
}

// export writes a JSON object a line. An error after the first row ends the answer with a broken connection, as
// in [writeLines].
func (p people) export(w http.ResponseWriter, r *request) error {
	person, err := r.text("id")
	if err != nil {
		return err
	}
	id := sessions.UserID(person)
	if err := p.reads.IsKept(r.Context(), operator, id); err != nil {
		return err
	}
	done, err := p.exports.begin(w)
	if err != nil {
		return err
	}
	defer done()
	out, begun := json.NewEncoder(w), false
	write := func(row any) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", linesType+"; charset=utf-8")
			w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.ndjson"`, url.PathEscape(string(id))))
		}
		return out.Encode(row)
	}
	err = p.reads.Export(r.Context(), r.operator(), id, manage.Reader{
		Fact:    func(m memory.Memory) error { return write(rows.OfPersonFact(m)) },
		Message: func(m memory.PersonMessage) error { return write(rows.OfPersonMessage(m)) },
		Record:  func(r memory.Record) error { return write(r) },
	})
	if err != nil && begun {
		zerolog.Ctx(r.Context()).Error().Err(err).Msg("Export of a person failed")
		panic(http.ErrAbortHandler)
	}
	return err
}

type searchView struct {
	Session sessions.Session
	Query   string
	Wrong   string // reason of a refused question
	Hits    []memory.Hit
	Asked   bool
}

const (
	searchHits  = 20
	searchChars = 400
)

// search looks for memories as a turn does.
type search struct {
	find func(context.Context, memory.Reader, memory.Query) ([]memory.Hit, error)
}

// show runs the recall of a turn: the reader is that of the conversation, so an administrator sees what the model would get, and
// nothing more. The query stays out of the audit, which may not have texts.
func (s search) show(w http.ResponseWriter, r *request) error {
	session, err := r.session()
	if err != nil {
		return err
	}
	v, key := searchView{Session: session}, session.Key
	v.Query = strings.TrimSpace(r.FormValue("q"))
	if utf8.RuneCountInString(v.Query) > maxArguments {
		v.Wrong = r.words.T("search.long", maxArguments)
		r.showAs(w, http.StatusBadRequest, "search", v)
		return nil
	}
	if v.Asked = v.Query != ""; v.Asked {
		find := func(ctx context.Context, lists pages.Lists) (err error) {
			if v.Session, err = lists.Session(ctx, key); err != nil {
				return err
			}
			events, _, err := lists.Talk(ctx, key, pages.Page{Limit: talkRows})
			if err != nil {
				return err
			}
			slices.Reverse(events) // the newest last, as in a turn
			v.Hits, err = s.find(ctx, draft.ReaderOf(draft.ChatOf(v.Session, events)), memory.Query{Text: v.Query, Limit: searchHits, Chars: searchChars})
			return err
		}
		if err := r.opened(private(v.Session), key, "search", find); err != nil {
			return err
		}
	}
	return r.show(w, "search", v)
}

// list finds people by a text in a name or the id. A name may be known from a private chat alone, so that a role that
// does not act sees none.
func (p people) list(w http.ResponseWriter, r *request) error {
	f := pages.PeopleFilter{Part: strings.TrimSpace(r.FormValue("q")), Names: r.acts()}
	if err := checkFilter(f.Part); err != nil {
		return err
	}
	v, err := list(r, func(page pages.Page) ([]pages.Speaker, string, error) { return p.records.People(r.Context(), f, page) })
	if err != nil {
		return err
	}
	if !f.Names {
		for i := range v.Rows {
			v.Rows[i].Nick = ""
		}
	}
	return r.show(w, "people", v)
}
