package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ebb/bot/manage"
	"ebb/memory/pages"
	"ebb/sessions"
)

// restartRows bounds lists without pages.
const restartRows = 200

func listRestarts(w http.ResponseWriter, r *request) error {
	v, err := list(r, func(p pages.Page) ([]sessions.Restart, string, error) { return r.lists.Restarts(r.Context(), p) })
	if err != nil {
		return err
	}
	return r.show(w, "restarts", v)
}

type attentionView struct {
	Dead   []sessions.Event
	Debts  []pages.Debt
	Titles map[sessions.Key]string // by group
}

// attention is the page of dead letters and owed flushes, with its buttons.
type attention struct {
	manage interface {
		RetryDeadLetter(ctx context.Context, by manage.Actor, key sessions.Key, id int64) (sessions.Key, error)
		RetryDebt(ctx context.Context, by manage.Actor, key sessions.Key) error
	}
}

// list shows dead letters and owed flushes. Titles are read for both lists at once.
func (a attention) list(w http.ResponseWriter, r *request) error {
	var v attentionView
	var err error
	if v.Dead, err = r.lists.DeadLetters(r.Context(), nil, restartRows); err != nil {
		return err
	}
	if v.Debts, err = r.lists.Debts(r.Context(), nil, restartRows); err != nil {
		return err
	}
	v.Titles, err = titles(r, func(yield func(sessions.Key) bool) {
		for _, e := range v.Dead {
			if !yield(e.Key) {
				return
			}
		}
		for _, d := range v.Debts {
			if !yield(d.Key) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return r.show(w, "attention", v)
}

// retry takes only dead letters that the page lists.
func (a attention) retry(w http.ResponseWriter, r *request) error {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	dead, err := r.lists.DeadLetters(r.Context(), nil, restartRows)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(dead, func(e sessions.Event) bool { return e.ID == id })
	if i < 0 {
		return errNotFound
	}
	err = r.audited("retry", dead[i].Key, "message "+strconv.FormatInt(id, 10), func(ctx context.Context) error {
		_, err := a.manage.RetryDeadLetter(ctx, operator, dead[i].Key, id)
		return err
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/attention", http.StatusSeeOther)
	return nil
}

func (a attention) retryDebt(w http.ResponseWriter, r *request) error {
	s, err := r.session()
	if err != nil {
		return err
	}
	err = r.audited("retry_flush", s.Key, "", func(ctx context.Context) error { return a.manage.RetryDebt(ctx, operator, s.Key) })
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/attention", http.StatusSeeOther)
	return nil
}

type settingsView struct{ Text, Waiting string }

type settings struct {
	read func() (text []byte, waiting []string, err error)
}

func (s settings) show(w http.ResponseWriter, r *request) error {
	text, waiting, err := s.read()
	if err != nil {
		return err
	}
	return r.show(w, "settings", settingsView{string(text), strings.Join(waiting, ", ")})
}

type auditView struct {
	listView[pages.Action]
	Titles map[sessions.Key]string // by group
}

func listActions(w http.ResponseWriter, r *request) error {
	var v auditView
	var err error
	v.listView, err = list(r, func(p pages.Page) ([]pages.Action, string, error) { return r.lists.Actions(r.Context(), nil, p) })
	if err != nil {
		return err
	}
	v.Titles, err = titles(r, func(yield func(sessions.Key) bool) {
		for _, a := range v.Rows {
			if !yield(a.Key) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return r.show(w, "audit", v)
}

type compact struct {
	manage interface {
		RequestCompact(ctx context.Context, by manage.Actor, s sessions.Session, text string) error
	}
}

// request leaves a request for the replica that owns the session, since this process may not. A policy of the form becomes a setting
// in front of the words, as a member would type it.
func (c compact) request(w http.ResponseWriter, r *request) error {
	s, err := r.session()
	if err != nil {
		return err
	}
	key := s.Key
	text := strings.ToValidUTF8(strings.TrimSpace(r.FormValue("arguments")), "")
	if utf8.RuneCountInString(text) > maxArguments {
		return badRequest{code: "error.arguments", args: []any{maxArguments}}
	}
	if policy := r.FormValue("policy"); policy != "" {
		text = "policy=" + policy + " " + text
	}
	err = r.audited("compact", key, "", func(ctx context.Context) error {
		return asBadRequest(c.manage.RequestCompact(ctx, r.operator(), s, text))
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/sessions/"+url.PathEscape(string(key)), http.StatusSeeOther)
	return nil
}

func asBadRequest(err error) error {
	if errors.Is(err, sessions.ErrConflict) {
		return badRequest{code: "error.compact_waits"}
	}
	if invalid, ok := errors.AsType[*manage.InvalidSetting](err); ok {
		return badRequest{code: "error.compact_setting", args: []any{invalid.Reason.Error()}}
	}
	if idle, ok := errors.AsType[*manage.IdleSetting](err); ok {
		return badRequest{code: "error.compact_setting", args: []any{idle.Error()}}
	}
	if refusal, ok := errors.AsType[manage.Refusal](err); ok {
		return badRequest{code: "error.compact_setting", args: []any{refusal.Error()}}
	}
	return err
}
