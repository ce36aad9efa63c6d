package sessions

import (
	"slices"
	"time"
)

// ModelID names a model at an endpoint. A refusal holds for both together: the same words may pass elsewhere.
type ModelID string

// Withheld has the models that refuse a row: an event, a summary or a fact. Requests to them leave out the named parts of
// the row. It has no text, and it is deleted with its row.
type Withheld map[ModelID]Refusal

// Refusal is a model's refusal of a row.
type Refusal struct {
	Parts []WithheldPart `json:"parts"`
	Class string         `json:"class"` // class of the model's error
	At    time.Time      `json:"at"`
}

// WithheldPart is a part of an event that requests leave out.
type WithheldPart string

// The parts. A title belongs to the conversation, and a nick to its person: each is left out with all events of the view.
const (
	WithheldBody  WithheldPart = "body"
	WithheldQuote WithheldPart = "quote"
	WithheldNick  WithheldPart = "nick"
	WithheldTitle WithheldPart = "title"
)

// WithheldText stands in requests for what a model refuses.
const WithheldText = "[有一条内容没有发给模型：服务商拒绝它 a message was left out: the provider refuses it]"

// WithheldTokens is its count, rounded up.
const WithheldTokens = 40

// From reports whether the part is left out of requests to a model.
func (w Withheld) From(model ModelID, part WithheldPart) bool {
	return slices.Contains(w[model].Parts, part)
}

// With returns the marks with one more.
func (w Withheld) With(model ModelID, r Refusal) Withheld {
	all := Withheld{}
	for m, old := range w {
		all[m] = old
	}
	for _, part := range all[model].Parts {
		if !slices.Contains(r.Parts, part) {
			r.Parts = append(r.Parts, part)
		}
	}
	all[model] = r
	return all
}

// CoversPage is likewise for a page of a kept file.
func (s *Suspicion) CoversPage(model ModelID, page PageID) bool {
	return s != nil && s.Model == model && slices.Contains(s.Pages, page)
}

// Suspicion has the rows of a refused request of which some are at fault. Requests to the model leave out all of them until
// the ones at fault are found.
type Suspicion struct {
	Model     ModelID   `json:"model"`
	Class     string    `json:"class"`
	At        time.Time `json:"at"`
	From      int64     `json:"from,omitempty"` // events of the view, inclusive; 0: none
	Through   int64     `json:"through,omitempty"`
	Summaries bool      `json:"summaries,omitempty"`
	Pinned    bool      `json:"pinned,omitempty"`
	Facts     []int64   `json:"facts,omitempty"`  // recalled facts
	Events    []int64   `json:"events,omitempty"` // recalled events from before the view
	Pages     []PageID  `json:"pages,omitempty"`  // pages of kept files that were recalled, and of documents in the view
}

// Covers reports whether an event is under suspicion.
func (s *Suspicion) Covers(model ModelID, seq int64) bool {
	return s != nil && s.Model == model && seq > 0 && (s.From <= seq && seq <= s.Through || slices.Contains(s.Events, seq))
}

// CoversFact is likewise for a fact.
func (s *Suspicion) CoversFact(model ModelID, id int64) bool {
	return s != nil && s.Model == model && slices.Contains(s.Facts, id)
}

// Concerns reports whether rows are under suspicion for the model.
func (s *Suspicion) Concerns(model ModelID) bool { return s != nil && s.Model == model }

// Join adds an earlier suspicion of the same model. Another model's is dropped: a later refusal finds its rows again.
func (s *Suspicion) Join(old *Suspicion) *Suspicion {
	if s == nil || !old.Concerns(s.Model) {
		return s
	}
	all := *s
	if old.From > 0 && (all.From == 0 || old.From < all.From) {
		all.From = old.From
	}
	all.Through = max(all.Through, old.Through)
	all.Summaries, all.Pinned = all.Summaries || old.Summaries, all.Pinned || old.Pinned
	all.Facts = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(old.Facts), all.Facts...))))
	all.Events = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(old.Events), all.Events...))))
	all.Pages = slices.Clone(all.Pages)
	for _, p := range old.Pages {
		if !slices.Contains(all.Pages, p) {
			all.Pages = append(all.Pages, p)
		}
	}
	return &all
}

// Withholding is a change of marks, for [Withholder.Withhold].
type Withholding struct {
	Model     ModelID
	Class     string
	At        time.Time
	Events    map[int64][]WithheldPart // by place
	Summaries []int64                  // by id
	Facts     []int64
	Pages     []PageID
	// Settles is the suspicion that the search was for; nil: none. Suspicion replaces it, unless the session has a newer one.
	Settles   *Suspicion
	Suspicion *Suspicion // nil: none
}

// Replaces reports whether a session's suspicion is the one that is settled.
func (w Withholding) Replaces(s *Suspicion) bool {
	return w.Settles != nil && s != nil && w.Settles.At.Equal(s.At)
}

// Mark is the refusal of one of its rows.
func (w Withholding) Mark(parts ...WithheldPart) Refusal {
	return Refusal{Parts: parts, Class: w.Class, At: w.At}
}
