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

func (c *Console) memories(w http.ResponseWriter, r *request) error {
	return showList(c, w, r, "memories", memoryFilter, func(f pages.MemoryFilter, p pages.Page) ([]memory.Memory, string, error) {
		return r.lists.Memories(r.Context(), f, p)
	})
}

type memoryView struct {
	Memory memory.Memory
	Values []memory.Memory
}

func (c *Console) memory(w http.ResponseWriter, r *request) error {
	m, values, err := r.memory()
	if err != nil {
		return err
	}
	v := memoryView{m, values}
	key, private := memory.PrivateSource(v.Values)
	err = c.entry.opened(r, private, key, "memory "+strconv.FormatInt(m.ID, 10), func(ctx context.Context, lists pages.Lists) (err error) {
		v.Memory, v.Values, err = lists.Memory(ctx, m.ID)
		return err
	})
	if err != nil {
		return err
	}
	c.pages.show(w, r, http.StatusOK, "memory", v)
	return nil
}

func (c *Console) forgetMemory(w http.ResponseWriter, r *request) error {
	m, _, err := r.memory()
	if err != nil {
		return err
	}
	if !r.whole() && m.Scope != memory.ScopeGroup && m.Scope != memory.ScopeSession {
		return errForbidden // other groups know a fact of the team or of a person
	}
	by := operator
	by.Asking.GroupOnly = !r.whole() // its erasure takes copies of the memory too
	err = c.entry.audited(r, "forget", m.SourceSession, "memory "+strconv.FormatInt(m.ID, 10), func(ctx context.Context) error {
		_, _, err := c.cfg.Manage.ForgetFact(ctx, by, m.ID)
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

type personView struct {
	ID      sessions.UserID
	Nick    string // empty for a role that does not act, as on the list of people
	Spoke   pages.ConversationCount
	Preview *memory.Preview // nil: not asked for, as it reads the logs of all their conversations
	Facts   []memory.Memory
}

func (c *Console) person(w http.ResponseWriter, r *request) error {
	id, err := r.text("id")
	if err != nil {
		return err
	}
	v := personView{ID: sessions.UserID(id)}
	if err := c.cfg.Reads.IsKept(r.Context(), operator, v.ID); err != nil {
		return err
	}
	if v.Spoke, err = c.cfg.Records.CountConversations(r.Context(), v.ID); err != nil {
		return err
	}
	if r.acts() {
		named, _, err := c.cfg.Records.People(r.Context(), pages.PeopleFilter{Part: id, Names: true}, pages.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(named) > 0 && named[0].ID == v.ID {
			v.Nick = named[0].Nick
		}
	}
	if r.FormValue("preview") == "yes" {
		p, err := c.cfg.Reads.PreviewPerson(r.Context(), operator, v.ID)
		if err != nil {
			return err
		}
		v.Preview = &p
	}
	if v.Facts, _, err = r.lists.Memories(r.Context(), pages.MemoryFilter{Person: v.ID}, pages.Page{Limit: listRows}); err != nil {
		return err
	}
	c.pages.show(w, r, http.StatusOK, "person", v)
	return nil
}

func (c *Console) forgetPerson(w http.ResponseWriter, r *request) error {
	person, err := r.text("id")
	if err != nil {
		return err
	}
	id := sessions.UserID(person)
	err = c.entry.auditedAs(r, pages.Action{Action: manage.ForgotPerson, Person: id}, func(ctx context.Context) error {
		_, err := c.cfg.Manage.ForgetPerson(ctx, operator, id)
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

// exportPerson writes a JSON object a line. An error after the first row ends the answer with a broken connection, as
// in [Console.writeLines].
func (c *Console) exportPerson(w http.ResponseWriter, r *request) error {
	person, err := r.text("id")
	if err != nil {
		return err
	}
	id := sessions.UserID(person)
	if err := c.cfg.Reads.IsKept(r.Context(), operator, id); err != nil {
		return err
	}
	done, err := c.export(w)
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
	err = c.cfg.Reads.Export(r.Context(), r.operator(), id, manage.Reader{
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

// search runs the recall of a turn: the reader is that of the conversation, so an administrator sees what the model would get, and
// nothing more. The query stays out of the audit, which may not have texts.
func (c *Console) search(w http.ResponseWriter, r *request) error {
	s, err := r.session()
	if err != nil {
		return err
	}
	v, key := searchView{Session: s}, s.Key
	v.Query = strings.TrimSpace(r.FormValue("q"))
	if utf8.RuneCountInString(v.Query) > maxArguments {
		v.Wrong = r.words.T("search.long", maxArguments)
		c.pages.show(w, r, http.StatusBadRequest, "search", v)
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
			v.Hits, err = c.cfg.Search(ctx, draft.ReaderOf(draft.ChatOf(v.Session, events)), memory.Query{Text: v.Query, Limit: searchHits, Chars: searchChars})
			return err
		}
		if err := c.entry.opened(r, private(v.Session), key, "search", find); err != nil {
			return err
		}
	}
	c.pages.show(w, r, http.StatusOK, "search", v)
	return nil
}

func (c *Console) promote(w http.ResponseWriter, r *request) error {
	m, _, err := r.memory()
	if err != nil {
		return err
	}
	var shared memory.Memory
	err = c.entry.audited(r, "promote", m.SourceSession, "memory "+strconv.FormatInt(m.ID, 10), func(ctx context.Context) error {
		var err error
		shared, err = c.cfg.Manage.Promote(ctx, r.operator(), m.ID)
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

// people finds people by a text in a name or the id. A name may be known from a private chat alone, so that a role that
// does not act sees none.
func (c *Console) people(w http.ResponseWriter, r *request) error {
	f := pages.PeopleFilter{Part: strings.TrimSpace(r.FormValue("q")), Names: r.acts()}
	if err := checkFilter(f.Part); err != nil {
		return err
	}
	v, err := list(r, func(p pages.Page) ([]pages.Speaker, string, error) { return c.cfg.Records.People(r.Context(), f, p) })
	if err != nil {
		return err
	}
	if !f.Names {
		for i := range v.Rows {
			v.Rows[i].Nick = ""
		}
	}
	c.pages.show(w, r, http.StatusOK, "people", v)
	return nil
}
