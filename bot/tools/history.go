package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sessions/llm"
)

type historyArgs struct {
	Query  string `json:"query"`
	Range  span   `json:"range"`
	Since  string `json:"since"`
	Until  string `json:"until"`
	Before int64  `json:"before"`
	Limit  int    `json:"limit"`
	Page   int    `json:"page"`
}

var historySpec = llm.ToolSpec{
	Name:        sessions.HistoryTool,
	Description: "Original messages of this conversation, also compacted ones: a range whole, or the newest by words or time.",
	Schema: object(nil, map[string]any{
		"query": field("string", "words that occur"), "range": field("string", "12 or 10-20"),
		"since": field("string", "YYYY-MM-DD [HH:MM]"), "until": plain("string"),
		"before": plain("integer"), "limit": plain("integer"), "page": plain("integer"),
	}),
}

// span is a range of numbers. Some models write a single number without quotes.
type span string

// UnmarshalJSON takes a string, a number or null.
func (s *span) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text != "null" {
		*s = span(text)
	}
	return nil
}

const findChars = 2000

type historian struct {
	from Parts
	loc  *time.Location
}

// call reads a plain range as a whole, in pages, and searches by anything else: a model that names numbers wants each event, and a
// search shows beginnings. Each answer says by which call to go on.
func (h historian) call(ctx context.Context, in chat.ToolInput, a historyArgs) (string, error) {
	q, err := h.seek(a)
	if err != nil {
		return "", err
	}
	log := logReader(h.from, in, h.loc)
	var shown []sessions.Event
	if in.Show != nil {
		log.Shown = func(e sessions.Event) {
			if e.HasFiles() && e.Content != sessions.WithheldText {
				shown = append(shown, e)
			}
		}
	}
	var text string
	if q.From > 0 && q.Words == "" && q.Since.IsZero() && q.Until.IsZero() {
		text, err = log.Whole(ctx, q.From, q.Through, a.Page, func(span string, page int) string {
			if page == 1 {
				page = 0
			}
			return show.CallOf(sessions.HistoryTool, "range", span, "page", page)
		})
	} else {
		text, err = log.Find(ctx, q, sessions.ReadCall, func(seq int64) string {
			return show.CallOf(sessions.HistoryTool, "query", a.Query, "range", string(a.Range), "since", a.Since, "until", a.Until, "before", seq, "limit", a.Limit)
		})
	}
	if errors.Is(err, show.ErrUnreadable) {
		err = storeFault(ctx, err, "query_history: the log can't be read at the moment")
	}
	if err != nil || len(shown) == 0 {
		return text, err
	}
	return text + attachments(ctx, h.from.Files, in, shown), nil
}

// seek turns arguments into a query. Models send numbers as texts and dates without times: a day means all of it, a minute all its
// seconds. Errors name the wanted form, since the model reads them and tries again.
func (h historian) seek(a historyArgs) (q memory.LogQuery, err error) {
	q = memory.LogQuery{Words: strings.TrimSpace(a.Query), Limit: a.Limit, Chars: findChars}
	if q.Limit < 1 || q.Limit > 50 {
		q.Limit = 20
	}
	if a.Range != "" {
		var ok bool
		if q.From, q.Through, ok = show.ParseSpan(string(a.Range)); !ok {
			return q, fmt.Errorf("range %q: want message numbers such as 12 or 10-20", memory.HeadOf(string(a.Range)))
		}
	}
	if a.Before > 0 && (q.Through == 0 || q.Through >= a.Before) {
		if q.Through = a.Before - 1; q.Through < max(1, q.From) {
			return q, fmt.Errorf("there is nothing before %d to read here", a.Before)
		}
	}
	if q.Since, _, err = h.at("since", a.Since); err != nil {
		return q, err
	}
	var day bool
	if q.Until, day, err = h.at("until", a.Until); err != nil {
		return q, err
	}
	switch {
	case day:
		q.Until = q.Until.AddDate(0, 0, 1)
	case !q.Until.IsZero():
		q.Until = q.Until.Add(time.Minute)
	}
	return q, nil
}

// at reads a time of the group's zone; day reports whether it is a whole day.
func (h historian) at(name, text string) (at time.Time, day bool, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return at, false, nil
	}
	if at, err = time.ParseInLocation(time.DateOnly, text, h.loc); err == nil {
		return at, true, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, time.RFC3339} {
		if at, err = time.ParseInLocation(layout, text, h.loc); err == nil {
			return at, false, nil
		}
	}
	return at, false, fmt.Errorf("%s %q: want YYYY-MM-DD or YYYY-MM-DD HH:MM", name, memory.HeadOf(text))
}

func logReader(from Parts, in chat.ToolInput, loc *time.Location) show.LogReader {
	return show.LogReader{Log: readBy(in, from), Key: in.Reader.Key, Current: in.Current, Room: in.Room, Location: loc}
}
