package console

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/pages"
	"ebb/sessions"
)

// The rows of an answer of the API.
const (
	apiRows    = 50
	apiMaxRows = 500
)

// routeAPI adds the API.
func (c *Console) routeAPI(mux *http.ServeMux) {
	for path, read := range map[string]func(*request, pages.Page) (any, string, error){
		"sessions": func(r *request, p pages.Page) (any, string, error) {
			f, err := sessionFilter(r.FormValue("q"))
			if err != nil {
				return nil, "", err
			}
			rows, next, err := r.lists.Sessions(r.Context(), f, p)
			return each(rows, viewSession), next, err
		},
		"sessions/{key}/events": func(r *request, p pages.Page) (any, string, error) {
			key, err := r.key("key")
			if err != nil {
				return nil, "", err
			}
			if _, err := r.lists.Session(r.Context(), key); err != nil {
				return nil, "", err
			}
			rows, next, err := r.lists.Talk(r.Context(), key, p)
			return each(rows, viewEvent), next, err
		},
		"compactions": func(r *request, p pages.Page) (any, string, error) {
			f, err := compactionFilter(r.FormValue("q"), c.cfg.Location)
			if err != nil {
				return nil, "", err
			}
			rows, next, err := r.lists.Compactions(r.Context(), f, p)
			return each(rows, viewCompaction), next, err
		},
		"memories": func(r *request, p pages.Page) (any, string, error) {
			f, err := memoryFilter(r.FormValue("q"))
			if err != nil {
				return nil, "", err
			}
			rows, next, err := r.lists.Memories(r.Context(), f, p)
			return each(rows, viewMemory), next, err
		},
		"restarts": func(r *request, p pages.Page) (any, string, error) {
			rows, err := r.lists.Restarts(r.Context(), p.Limit)
			return each(rows, viewRestart), "", err
		},
		"usage": func(r *request, _ pages.Page) (any, string, error) {
			rows, err := r.lists.Costs(r.Context(), nil, time.Now().AddDate(0, 0, -29), r.FormValue("by") == "session")
			return each(rows, viewCost), "", err
		},
	} {
		mux.Handle("GET /api/v1/"+path, c.api(read))
	}
	mux.Handle("/api/", c.api(func(*request, pages.Page) (any, string, error) { return nil, "", errNotFound }))
}

// answer is the answer to a list: its rows and the cursor of the next ones, empty at the end.
type answer struct {
	Items any    `json:"items"`
	Next  string `json:"next"`
}

// api answers a request with a token. Each request carries it; a cookie is not enough.
func (c *Console) api(read func(*request, pages.Page) (any, string, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := c.pages.words["en"]
		login, status := c.bearer(r)
		if status != http.StatusOK {
			w.Header().Set("WWW-Authenticate", `Bearer realm="ebb"`)
			writeJSON(w, r, status, map[string]string{"error": words.T(wrongToken[status])})
			return
		}
		limit, err := limitOf(r.FormValue("limit"))
		var v answer
		if err == nil {
			var req *request
			if req, err = c.as(r, login, words); err == nil {
				v.Items, v.Next, err = read(req, pages.Page{Limit: limit, Cursor: r.FormValue("cursor")})
			}
		}
		if err != nil {
			status, bad := statusOf(err)
			if status == http.StatusInternalServerError {
				zerolog.Ctx(r.Context()).Error().Err(err).Str("path", r.URL.Path).Msg("API request failed")
			}
			writeJSON(w, r, status, map[string]string{"error": words.T(bad.code, bad.args...)})
			return
		}
		writeJSON(w, r, http.StatusOK, v)
	})
}

// bearer returns the login of a token, and the status without one.
func (c *Console) bearer(r *http.Request) (pages.Login, int) {
	if !c.hasLogins() && c.cfg.IsLocal(r) {
		return pages.Login{Role: pages.RoleAdmin, Actor: localActor}, http.StatusOK
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return pages.Login{}, http.StatusUnauthorized
	}
	return c.enter(r, strings.TrimSpace(token))
}

// limitOf reads the number of rows of a page.
func limitOf(text string) (int, error) {
	if text == "" {
		return apiRows, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > apiMaxRows {
		return 0, badRequest{code: "error.limit", args: []any{text, apiMaxRows}}
	}
	return n, nil
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

// each converts all rows; the result is never null in JSON.
func each[T, V any](rows []T, view func(T) V) []V {
	out := make([]V, len(rows))
	for i, row := range rows {
		out[i] = view(row)
	}
	return out
}

// sessionJSON is a session in the API.
type sessionJSON struct {
	Key          sessions.Key            `json:"session_key"`
	Title        string                  `json:"title"`
	Conversation sessions.ConversationID `json:"conversation_id"`
	Private      bool                    `json:"private"`
	Tokens       int                     `json:"total_tokens"`
	LastSeq      int64                   `json:"last_seq"`
	CompactedSeq int64                   `json:"compacted_seq"`
	FlushedSeq   int64                   `json:"flushed_seq"`
	Compactions  int                     `json:"compaction_count"`
	Flushes      int                     `json:"flush_count"`
	Model        string                  `json:"model"`
	Waiting      int                     `json:"waiting"`
	Dead         int                     `json:"dead"`
	Owed         bool                    `json:"flush_owed"`
	LastActiveAt time.Time               `json:"last_active_at"`
}

func viewSession(r pages.SessionRow) sessionJSON {
	return sessionJSON{
		Key: r.Key, Title: r.Title, Conversation: r.ConversationID, Private: private(r.Session), Tokens: r.TotalTokens, LastSeq: r.LastSeq,
		CompactedSeq: r.CompactedSeq, FlushedSeq: r.FlushedSeq, Compactions: r.CompactionCount, Flushes: r.FlushCount, Model: r.Model,
		Waiting: r.Waiting, Dead: r.Dead, Owed: r.Owed, LastActiveAt: r.LastActiveAt,
	}
}

// eventJSON is an event in the API.
type eventJSON struct {
	ID        int64               `json:"id"`
	Seq       int64               `json:"seq"`
	Role      sessions.Role       `json:"role"`
	Content   string              `json:"content"`
	Sender    sessions.UserID     `json:"sender_id,omitempty"`
	Nick      string              `json:"sender_nick,omitempty"`
	ToolCalls []sessions.ToolCall `json:"tool_calls,omitempty"`
	ToolName  string              `json:"tool_name,omitempty"`
	Tokens    int                 `json:"tokens"`
	State     sessions.State      `json:"state"`
	CreatedAt time.Time           `json:"created_at"`
}

func viewEvent(e sessions.Event) eventJSON {
	return eventJSON{
		ID: e.ID, Seq: e.Seq, Role: e.Role, Content: e.Content, Sender: e.SenderID, Nick: e.SenderNick, ToolCalls: e.ToolCalls,
		ToolName: e.ToolName, Tokens: e.Tokens, State: e.State, CreatedAt: e.CreatedAt,
	}
}

// compactionJSON is an attempt in the API.
type compactionJSON struct {
	ID           int64        `json:"id"`
	Key          sessions.Key `json:"session_key"`
	Trigger      string       `json:"trigger"`
	Policy       string       `json:"policy"`
	Mode         string       `json:"mode"`
	Model        string       `json:"model"`
	Outcome      string       `json:"outcome"`
	Error        string       `json:"error"`
	TokensBefore int          `json:"tokens_before"`
	TokensAfter  int          `json:"tokens_after"`
	StartSeq     int64        `json:"start_seq"`
	EndSeq       int64        `json:"end_seq"`
	Cost         float64      `json:"cost"`
	DurationMS   int64        `json:"duration_ms"`
	UndoneAt     time.Time    `json:"undone_at,omitzero"`
	CreatedAt    time.Time    `json:"created_at"`
}

func viewCompaction(r pages.CompactionRow) compactionJSON {
	return compactionJSON{
		ID: r.ID, Key: r.Key, Trigger: r.Trigger, Policy: r.Policy, Mode: r.Mode, Model: r.Model, Outcome: r.Outcome, Error: r.Error,
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, StartSeq: r.StartSeq, EndSeq: r.EndSeq, Cost: r.Cost,
		DurationMS: r.Duration.Milliseconds(), UndoneAt: r.Undone, CreatedAt: r.CreatedAt,
	}
}

// memoryJSON is a memory in the API.
type memoryJSON struct {
	ID           int64           `json:"id"`
	Scope        memory.Scope    `json:"scope"`
	ScopeID      string          `json:"scope_id"`
	Kind         memory.Kind     `json:"kind"`
	Content      string          `json:"content"`
	Subject      sessions.UserID `json:"subject_id,omitempty"`
	SaidBy       sessions.UserID `json:"said_by,omitempty"`
	Session      sessions.Key    `json:"source_session"`
	StartSeq     int64           `json:"start_seq"`
	EndSeq       int64           `json:"end_seq"`
	SupersededBy int64           `json:"superseded_by,omitempty"`
	ExpiresAt    time.Time       `json:"expires_at,omitzero"`
	CreatedAt    time.Time       `json:"created_at"`
}

func viewMemory(m memory.Memory) memoryJSON {
	return memoryJSON{
		ID: m.ID, Scope: m.Scope, ScopeID: m.ScopeID, Kind: m.Kind, Content: m.Content, Subject: m.SubjectID, SaidBy: m.SaidBy,
		Session: m.SourceSession, StartSeq: m.StartSeq, EndSeq: m.EndSeq, SupersededBy: m.SupersededBy, ExpiresAt: m.ExpiresAt, CreatedAt: m.CreatedAt,
	}
}

// restartJSON is the account of a process in the API.
type restartJSON struct {
	Replica   sessions.ReplicaID      `json:"replica"`
	StartedAt time.Time               `json:"started_at"`
	StoppedAt time.Time               `json:"stopped_at,omitzero"`
	Ending    sessions.Ending         `json:"ending"`
	Figures   sessions.RestartFigures `json:"figures"`
}

func viewRestart(r sessions.Restart) restartJSON {
	return restartJSON{r.Replica, r.StartedAt, r.StoppedAt, r.Ending, r.Figures}
}

// costJSON is a sum of usage in the API.
type costJSON struct {
	Key        sessions.Key `json:"session_key,omitempty"`
	Day        string       `json:"day,omitempty"`
	Kind       string       `json:"kind"`
	Prompt     int          `json:"prompt_tokens"`
	Cached     int          `json:"cached_tokens"`
	Completion int          `json:"completion_tokens"`
	Cost       float64      `json:"cost"`
}

func viewCost(c pages.Cost) costJSON {
	return costJSON{c.Key, c.Day, c.Kind, c.Usage.Prompt, c.Usage.Cached, c.Usage.Completion, c.Cost}
}
