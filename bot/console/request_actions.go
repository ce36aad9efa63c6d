package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"ebb/bot/manage"
	"ebb/sessions"
)

// maxArguments bounds the arguments of a requested compaction in characters.
const maxArguments = 500

// compact asks for a compaction of a session, as /compact does in its conversation.
func (c *Console) compact(w http.ResponseWriter, r *request) error {
	key, err := r.key("key")
	if err != nil {
		return err
	}
	s, err := r.lists.Session(r.Context(), key)
	if err != nil {
		return err
	}
	text := strings.ToValidUTF8(strings.TrimSpace(r.FormValue("arguments")), "")
	if utf8.RuneCountInString(text) > maxArguments {
		return badRequest{code: "error.arguments", args: []any{maxArguments}}
	}
	if policy := r.FormValue("policy"); policy != "" {
		text = "policy=" + policy + " " + text
	}
	err = c.audited(r, "compact", key, "", func(ctx context.Context) error {
		return asBadRequest(c.cfg.Manage.RequestCompact(ctx, operator, s, text))
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/sessions/"+url.PathEscape(string(key)), http.StatusSeeOther)
	return nil
}

// asBadRequest returns the fault of a request for a compaction in words of the catalog.
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

// retryDebt lets the background repeat the owed flush of a session at once.
func (c *Console) retryDebt(w http.ResponseWriter, r *request) error {
	key, err := r.key("key")
	if err != nil {
		return err
	}
	if _, err := r.lists.Session(r.Context(), key); err != nil {
		return err
	}
	err = c.audited(r, "retry_flush", key, "", func(ctx context.Context) error { return c.cfg.Manage.RetryDebt(ctx, operator, key) })
	if err != nil {
		return err
	}
	http.Redirect(w, r.Request, "/attention", http.StatusSeeOther)
	return nil
}
