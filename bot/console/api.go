package console

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/console/auth"
	"ebb/bot/console/render"
	"ebb/bot/rows"
	"ebb/memory/pages"
	"ebb/sessions"
)

const (
	apiRows    = 50
	apiMaxRows = 500
)

// apiList reads rows of a page, in JSON, and the cursor of the next ones, empty at the end.
type apiList func(*request, pages.Page) (rows []any, next string, err error)

// apiLists has each list of the API by its path. The rows come from the restricted lists, so each role sees what the pages show it.
// Texts of a private chat are read through opened, which leaves a row in the audit.
func apiLists(zone *time.Location, u usage) map[string]apiList {
	return map[string]apiList{
		"sessions": func(r *request, p pages.Page) ([]any, string, error) {
			f, err := sessionFilter(r.FormValue("q"))
			if err != nil {
				return nil, "", err
			}
			list, next, err := r.lists.Sessions(r.Context(), f, p)
			return each(list, rows.OfListed), next, err
		},
		"sessions/{key}/events": func(r *request, p pages.Page) ([]any, string, error) {
			key, err := r.key("key")
			if err != nil {
				return nil, "", err
			}
			s, err := r.lists.Session(r.Context(), key)
			if err != nil {
				return nil, "", err
			}
			var list []sessions.Event
			var next string
			err = r.opened(private(s), key, "", func(ctx context.Context, lists pages.Lists) (err error) {
				list, next, err = lists.Talk(ctx, key, p)
				return err
			})
			return each(list, rows.OfEvent), next, err
		},
		"compactions": func(r *request, p pages.Page) ([]any, string, error) {
			f, err := compactionFilter(r.FormValue("q"), zone)
			if err != nil {
				return nil, "", err
			}
			list, next, err := r.lists.Compactions(r.Context(), f, p)
			return each(list, rows.OfAttempt), next, err
		},
		"memories": func(r *request, p pages.Page) ([]any, string, error) {
			f, err := memoryFilter(r.FormValue("q"))
			if err != nil {
				return nil, "", err
			}
			list, next, err := r.lists.Memories(r.Context(), f, p)
			return each(list, rows.OfMemory), next, err
		},
		"schedules": func(r *request, p pages.Page) ([]any, string, error) {
			f, err := scheduleFilter(r.FormValue("q"))
			if err != nil {
				return nil, "", err
			}
			list, next, err := r.lists.Schedules(r.Context(), f, p)
			return each(list, rows.OfSchedule), next, err
		},
		"files": func(r *request, p pages.Page) ([]any, string, error) {
			f, err := fileFilter(r.FormValue("q"))
			if err != nil {
				return nil, "", err
			}
			list, next, err := r.lists.Files(r.Context(), f, p)
			return each(list, rows.OfFile), next, err
		},
		"approvals": func(r *request, p pages.Page) ([]any, string, error) {
			f, err := approvalFilter(r.FormValue("q"))
			if err != nil {
				return nil, "", err
			}
			list, next, err := r.lists.Approvals(r.Context(), f, p)
			return each(list, rows.OfApproval), next, err
		},
		"restarts": func(r *request, p pages.Page) ([]any, string, error) {
			list, next, err := r.lists.Restarts(r.Context(), p)
			return each(list, rows.OfRestart), next, err
		},
		"usage": u.list,
	}
}

// fileFilter reads the filter of the list of kept files.
func fileFilter(text string) (pages.FileFilter, error) {
	p, err := parseFilter(text, "group", "session")
	if err != nil {
		return pages.FileFilter{}, err
	}
	session, err := p.one("session")
	return pages.FileFilter{Words: slices.Concat(p.words, p.values["group"]), Session: sessions.Key(session)}, err
}

// openAPI describes the API.
//
//go:embed openapi.yaml
var openAPI []byte

// api is the way of programs: each request has a token.
type api struct {
	entry   *entry
	tokens  *auth.Tokens
	words   render.Words
	exports exports
}

func (a api) route(mux *http.ServeMux, lists map[string]apiList) {
	for path, read := range lists {
		mux.Handle("GET /api/v1/"+path, a.list(read))
	}
	mux.HandleFunc("GET /api/v1/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI) // the peer may be gone
	})
	mux.Handle("/api/", a.list(func(*request, pages.Page) ([]any, string, error) { return nil, "", errNotFound }))
}

type answer struct {
	Items []any
	Next  string
}

// list wants a token with each request; a cookie is not enough.
func (a api) list(read apiList) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		login, status := a.bearer(r)
		if status != http.StatusOK {
			w.Header().Set("WWW-Authenticate", `Bearer realm="ebb"`)
			writeJSON(w, r, status, map[string]string{"error": a.words.T(wrongToken[status])})
			return
		}
		p, err := pageOf(r)
		var req *request
		if err == nil {
			req, err = a.entry.as(r, login, a.words)
		}
		var v answer
		if err == nil {
			v.Items, v.Next, err = read(req, p)
		}
		if err != nil {
			status, bad := apiError(r, err)
			writeJSON(w, r, status, map[string]string{"error": a.words.T(bad.code, bad.args...)})
			return
		}
		if !accepts(r, linesType) {
			writePage(w, v)
			return
		}
		done, err := a.exports.begin(w)
		if err != nil {
			status, bad := apiError(r, err)
			writeJSON(w, r, status, map[string]string{"error": a.words.T(bad.code, bad.args...)})
			return
		}
		defer done()
		writeLines(w, req, read, p, v)
	})
}

// writePage encodes row by row: a page of long texts is in memory once. An error ends the answer with a broken connection.
func writePage(w http.ResponseWriter, v answer) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	next, err := json.Marshal(v.Next)
	if err == nil {
		_, err = io.WriteString(w, `{"items":[`)
	}
	for i := 0; err == nil && i < len(v.Items); i++ {
		var row []byte
		if row, err = json.Marshal(v.Items[i]); err == nil && i > 0 {
			_, err = io.WriteString(w, ",")
		}
		if err == nil {
			_, err = w.Write(row)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "],\"next\":%s}\n", next)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the peer is gone, or a row can't be encoded
	}
}

// writeLines writes the rows of a page and of all later ones. An error ends the answer with a broken connection, so
// that no client takes a part for the whole.
func writeLines(w http.ResponseWriter, r *request, read apiList, p pages.Page, v answer) {
	w.Header().Set("Content-Type", linesType)
	out, p := json.NewEncoder(w), pages.Page{Limit: max(p.Limit, apiMaxRows), Fixed: true}
	for {
		for _, row := range v.Items {
			if out.Encode(row) != nil {
				return // the peer is gone
			}
		}
		if p.Cursor = v.Next; p.Cursor == "" {
			return
		}
		var err error
		if v.Items, v.Next, err = read(r, p); err != nil {
			_, _ = apiError(r.Request, err)
			panic(http.ErrAbortHandler)
		}
	}
}

func accepts(r *http.Request, kind string) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		name, _, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), kind) {
			return true
		}
	}
	return false
}

func (a api) bearer(r *http.Request) (pages.Login, int) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return pages.Login{}, http.StatusUnauthorized
	}
	return a.tokens.Enter(r, strings.TrimSpace(token))
}

func pageOf(r *http.Request) (pages.Page, error) {
	p, text := pages.Page{Limit: apiRows, Cursor: r.FormValue("cursor"), Fixed: true}, r.FormValue("limit")
	if text == "" {
		return p, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > apiMaxRows {
		return pages.Page{}, badRequest{code: "error.limit", args: []any{text, apiMaxRows}}
	}
	p.Limit = n
	return p, nil
}

func writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		zerolog.Ctx(r.Context()).Error().Err(err).Msg("API answer could not be written")
		status, b = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the peer may be gone
}
