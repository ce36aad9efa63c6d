package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/blame"
	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/extract"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// maxProbes bounds the requests of one search, of one token each. The next search goes on from its end.
const maxProbes = 40

// accuser finds the rows that a model refuses, and keeps them from it.
type accuser struct {
	shared  *parts.Shared
	views   *view.Builder
	model   llm.Model
	turns   Turns
	store   Withheld
	log     extract.Log
	tidying memory.Upkeep
	pages   Pages
	locks   *locks
	charger charger
	stats   Stats
}

// evidence is what a refused request showed, and the model that refused it.
type evidence struct {
	model string // configured name; empty for the default
	id    sessions.ModelID
	class string
	s     sessions.Session // its title is evidence too
	tools []llm.ToolSpec   // as in the refused request
	zone  *time.Location
	rows
}

type rows struct {
	facts     []memory.Memory
	summaries []sessions.Summary
	events    []sessions.Event
	pages     []suspectPage
}

// suspectPage is a page of a kept file.
type suspectPage struct {
	id   sessions.PageID
	text string
}

// suspect is a part of the evidence: a fact, a page, a summary, or a part of an event.
type suspect struct {
	fact, page, summary, event int // index; -1: none
	part                       sessions.WithheldPart
}

// list orders the parts as requests show them. A body is asked about without its quote, which follows.
func (x *evidence) list() (all []suspect) {
	one := func(fact, summary, event int, part sessions.WithheldPart) {
		all = append(all, suspect{fact, -1, summary, event, part})
	}
	if x.s.Title != "" && x.s.ConversationType != sessions.Private && len(x.events) > 0 {
		one(-1, -1, 0, sessions.WithheldTitle)
	}
	for i := range x.facts {
		one(i, -1, -1, sessions.WithheldBody)
	}
	for i := range x.pages {
		all = append(all, suspect{-1, i, -1, -1, sessions.WithheldBody})
	}
	for i := range x.summaries {
		one(-1, i, -1, sessions.WithheldBody)
	}
	nicks := map[string]bool{}
	for i, e := range x.events {
		if e.SenderNick != "" && x.s.ConversationType != sessions.Private && !nicks[e.SenderNick] {
			nicks[e.SenderNick] = true
			one(-1, -1, i, sessions.WithheldNick)
		}
		if e.Content == sessions.WithheldText || e.Content == sessions.ErasedText {
			continue
		}
		one(-1, -1, i, sessions.WithheldBody)
		if e.Message != nil && e.Message.Quote != nil {
			one(-1, -1, i, sessions.WithheldQuote)
		}
	}
	return all
}

// view shows the parts that are marked. Events behind the last one are not shown at all, so that a request extends a shorter one.
func (x *evidence) view(list []suspect, with []bool) sessions.View {
	v := sessions.View{Session: x.s}
	v.Session.Pinned, v.Session.Suspicion = "", nil
	last := -1
	left := make([][]sessions.WithheldPart, len(x.events))
	nicks := map[string]bool{}
	for i, p := range list {
		switch {
		case p.event >= 0 && with[i]:
			last = max(last, p.event)
		case p.part == sessions.WithheldTitle:
			v.Session.Title = ""
		case p.part == sessions.WithheldNick:
			nicks[x.events[p.event].SenderNick] = true
		case p.event >= 0:
			left[p.event] = append(left[p.event], p.part)
		case p.fact >= 0 && with[i]:
			v.Session.Pinned += memory.PinnedLine(x.facts[p.fact], x.zone)
		case p.page >= 0 && with[i]: // its place in the request is beside the point: the words are asked about
			v.Session.Pinned += "- " + x.pages[p.page].text + "\n"
		case p.summary >= 0 && with[i]:
			v.Summaries = append(v.Summaries, x.summaries[p.summary])
		}
	}
	for i, e := range x.events[:last+1] {
		if e = e.Without(left[i]...); nicks[e.SenderNick] {
			e.SenderNick = ""
		}
		v.Tail = append(v.Tail, e)
	}
	return v
}

var errNotAsked = errors.New("model could not be asked")

// refuses reports whether the model refuses a request with the parts that are marked, in the form of a turn. It asks for one token.
func (a accuser) refuses(ctx context.Context, x *evidence, list []suspect, with []bool) (bool, error) {
	v := x.view(list, with)
	whole, greeting := a.views.Greeting(v, a.shared.Now())
	whole.Session.ConversationType, whole.Session.Title, whole.Session.Pinned = v.Session.ConversationType, v.Session.Title, v.Session.Pinned
	whole.Summaries, whole.Tail = v.Summaries, v.Tail
	frame := a.views.Frames.FrameOf(v.Session)
	resp, err := a.model.Generate(ctx, llm.Request{
		Kind: llm.KindProbe, Model: x.model, Messages: frame.Assemble(whole, a.views.Choices.Settings(v.Session).Policy, "", []sessions.Event{greeting}),
		Tools: x.tools, MaxOutput: 1, Requests: 1, Greets: !slices.Contains(with, true),
	})
	a.charger.charge(ctx, x.s.Key, sessions.Spending{Kind: sessions.SpentProbe, Usage: resp.Usage, Cost: resp.Cost, Model: resp.UsedModel()})
	fault, failed := errors.AsType[*llm.CallError](err)
	asked := resp.Model
	if failed {
		asked = fault.Model
	}
	switch {
	case asked != "" && a.views.Choices.ModelID(x.s.Key, asked) != x.id:
		return false, errNotAsked // another model was asked in its place
	case failed && fault.RequestFault():
		return true, nil
	case llm.Accepted(err):
		return false, nil
	}
	return false, fmt.Errorf("%w: %w", errNotAsked, err)
}

// search finds the rows at fault, and marks them in the evidence. rest is the index of the first event that is not known, unless the
// search is done. A model that refuses a greeting too is at fault itself: nothing is marked then.
func (a accuser) search(ctx context.Context, x *evidence) (w sessions.Withholding, rest int, done bool, err error) {
	x.zone = a.shared.Location
	w = sessions.Withholding{Model: x.id, Class: x.class, At: a.shared.Now(), Events: map[int64][]sessions.WithheldPart{}}
	list := x.list()
	refused, err := a.refuses(ctx, x, list, make([]bool, len(list)))
	if err == nil && refused {
		err = fmt.Errorf("%w: it refuses every request", errNotAsked)
	}
	if err != nil {
		return w, 0, false, err
	}
	found, err := blame.Find(ctx, len(list), maxProbes, func(ctx context.Context, with []bool) (bool, error) {
		return a.refuses(ctx, x, list, with)
	})
	for _, i := range found.Guilty {
		switch p := list[i]; {
		case p.fact >= 0:
			w.Facts = append(w.Facts, x.facts[p.fact].ID)
		case p.page >= 0:
			w.Pages = append(w.Pages, x.pages[p.page].id)
		case p.summary >= 0:
			w.Summaries = append(w.Summaries, x.summaries[p.summary].ID)
		default:
			e := &x.events[p.event]
			e.Withheld = e.Withheld.With(x.id, w.Mark(p.part))
			w.Events[e.Seq] = e.Withheld[x.id].Parts
		}
	}
	if found.Sound < len(list) {
		return w, callOf(x.events, max(0, list[found.Sound].event)), false, err
	}
	return w, 0, true, err
}

// callOf goes back from a result to its call: a result alone is no legal request, and so is not asked about.
func callOf(events []sessions.Event, at int) int {
	for at > 0 && events[at].Role == sessions.RoleTool {
		at--
	}
	return at
}

// withhold stores what was found, and says so once.
func (a accuser) withhold(ctx context.Context, l sessions.Lease, w sessions.Withholding) error {
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), a.shared.CommitTimeout)
	defer stop()
	if len(w.Pages) > 0 { // before the suspicion is lifted: a mark holds under any lease
		if err := a.pages.WithholdPages(one, l.Key, w); err != nil {
			return err
		}
	}
	if err := a.store.Withhold(one, l, w); err != nil {
		return err
	}
	a.reportWithheld(ctx, w)
	return nil
}

func (a accuser) reportWithheld(ctx context.Context, w sessions.Withholding) {
	log := zerolog.Ctx(ctx)
	for seq, parts := range w.Events {
		log.Warn().Int64("event", seq).Any("parts", parts).Str("class", w.Class).Str("model", string(w.Model)).Msg("Message kept from the model: the provider refuses it")
	}
	if len(w.Summaries)+len(w.Facts) > 0 {
		log.Warn().Ints64("summaries", w.Summaries).Ints64("facts", w.Facts).Str("class", w.Class).Str("model", string(w.Model)).
			Msg("Memory kept from the model: the provider refuses it")
	}
	if len(w.Pages) > 0 {
		log.Warn().Any("pages", w.Pages).Str("class", w.Class).Str("model", string(w.Model)).Msg("Pages of kept files kept from the model: the provider refuses them")
	}
	for row, n := range map[WithheldKind]int{
		WithheldMessage: len(w.Events), WithheldSummary: len(w.Summaries), WithheldFact: len(w.Facts), WithheldPage: len(w.Pages),
	} {
		if n > 0 {
			a.stats.Withheld(row, n)
		}
	}
}

// settle looks for the rows at fault for a session's suspicion, and lifts it. A long search has several calls.
func (a accuser) settle(ctx context.Context, l sessions.Lease) error {
	unlock, err := a.locks.lock(ctx, l.Key)
	if err != nil {
		return fmt.Errorf("wait for upkeep: %w", err)
	}
	defer unlock()
	v, err := a.turns.Begin(ctx, l, 0)
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	a.views.Show(&v)
	s := v.Session.Suspicion
	switch {
	case s == nil:
		return nil
	case !s.Concerns(v.Reads): // the model has changed: it is asked for everything again
		return a.withhold(ctx, l, sessions.Withholding{Model: v.Reads, At: a.shared.Now(), Settles: s})
	}
	x := &evidence{model: a.views.Choices.Model(v.Session), id: v.Reads, class: s.Class, s: v.Session, tools: a.views.Frames.FrameOf(v.Session).Offer(v.Tail).Tools}
	if x.rows, err = a.suspected(ctx, v); err != nil {
		return err
	}
	w, rest, done, err := a.search(ctx, x)
	if err != nil && len(w.Events)+len(w.Summaries)+len(w.Facts)+len(w.Pages) == 0 {
		return err
	}
	w.Settles = s
	if !done {
		left := *s
		if rest > len(s.Events) { // everything before is known
			left.From, left.Summaries, left.Pinned, left.Facts, left.Events, left.Pages = x.events[rest].Seq, false, false, nil, nil, nil
		}
		w.Suspicion = &left
	}
	return errors.Join(a.withhold(ctx, l, w), err)
}

// suspected reads the rows under suspicion.
func (a accuser) suspected(ctx context.Context, v sessions.View) (r rows, err error) {
	s := v.Session.Suspicion
	if s.Summaries {
		r.summaries = slices.DeleteFunc(slices.Clone(v.Summaries), sessions.Summary.Emptied)
	}
	if s.Pinned || len(s.Facts) > 0 {
		if r.facts, err = a.views.Memory.Facts(ctx, v, s.Facts); err != nil {
			return r, err
		}
	}
	if r.pages, err = a.suspectedPages(ctx, v.Session.Key, s.Pages); err != nil {
		return r, err
	}
	for _, seq := range s.Events {
		if seq > v.Session.CompactedSeq {
			continue
		}
		old, err := a.log.Range(ctx, v.Session.Key, seq-1, seq, 1)
		if err != nil {
			return r, err
		}
		r.events = append(r.events, sessions.Readable(old, v.Reads)...)
	}
	for _, e := range v.Tail {
		if s.From <= e.Seq && e.Seq <= s.Through {
			r.events = append(r.events, e)
		}
	}
	return r, nil
}

// maxPageBytes bounds the part of a page that is asked about.
const maxPageBytes = 16 << 10

func (a accuser) suspectedPages(ctx context.Context, key sessions.Key, ids []sessions.PageID) (list []suspectPage, err error) {
	for _, id := range ids {
		text, err := a.pages.Page(ctx, key, id)
		if errors.Is(err, sessions.ErrNotFound) { // forgotten meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, suspectPage{id, memory.InLine(tokens.HeadTail(text, maxPageBytes))})
	}
	return list, nil
}

// readable are events as a model of upkeep reads them.
func (a accuser) readable(key sessions.Key, events []sessions.Event) []sessions.Event {
	return sessions.Readable(a.views.Words.WithoutCommands(events), a.reads(key))
}

// reads is the model of summaries, flushes and digests.
func (a accuser) reads(key sessions.Key) sessions.ModelID {
	return a.views.Choices.ModelID(key, a.shared.Current.For(key).SummaryModel)
}

// accuse looks for the events at fault for a refused request of upkeep, and marks them. It reports whether it found any:
// the work can be done again without them. Events are read in pieces that fit into the window.
func (a accuser) accuse(ctx context.Context, l sessions.Lease, s sessions.Session, cause error, summaries []sessions.Summary, events []sessions.Event) bool {
	fault, ok := errors.AsType[*llm.CallError](cause)
	if !ok || !fault.RequestFault() || ctx.Err() != nil {
		return false
	}
	model := a.shared.Current.For(s.Key).SummaryModel
	found, room := false, a.views.Choices.Settings(s).Window.Usable()/2
	for from := 0; from < len(events) || len(summaries) > 0; {
		end, tokens := from, 0
		for end < len(events) && (end == from || tokens+events[end].Tokens <= room || events[end].Role == sessions.RoleTool) {
			tokens += events[end].Tokens
			end++
		}
		x := &evidence{model: model, id: a.reads(s.Key), class: string(fault.Class), s: s, rows: rows{summaries: summaries, events: events[from:end]}}
		x.s.Title = "" // no request of upkeep shows it
		w, rest, done, err := a.search(ctx, x)
		if len(w.Events)+len(w.Summaries) > 0 {
			if saved := a.withhold(ctx, l, w); saved != nil {
				zerolog.Ctx(ctx).Warn().Err(saved).Msg("Failed to mark messages that the provider refuses")
				return false
			}
			found = true
		}
		if err != nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Search for what the provider refuses did not finish")
			return found
		}
		for i := range summaries {
			if slices.Contains(w.Summaries, summaries[i].ID) {
				summaries[i].Text = sessions.WithheldText
			}
		}
		summaries = nil
		switch {
		case done:
			from = end
		case rest == 0: // the questions were used up before the second event
			return found
		default:
			from += rest
		}
	}
	return found
}

// accuseFacts is accuse for facts. They belong to no lease.
func (a accuser) accuseFacts(ctx context.Context, p memory.FactGroup, cause error) bool {
	fault, ok := errors.AsType[*llm.CallError](cause)
	if !ok || !fault.RequestFault() || ctx.Err() != nil {
		return false
	}
	facts, err := a.tidying.Oldest(ctx, p, maxMergedFacts)
	if err != nil {
		return false
	}
	robot, conversation := p.Session.Conversation()
	x := &evidence{
		model: a.shared.Current.For(p.Session).SummaryModel, id: p.Reads, class: string(fault.Class), rows: rows{facts: facts},
		s: sessions.Session{Key: p.Session, RobotCode: robot, ConversationID: conversation},
	}
	w, _, _, err := a.search(ctx, x)
	if len(w.Facts) == 0 {
		return false
	}
	if err := errors.Join(err, a.tidying.WithholdFacts(ctx, w)); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Search for what the provider refuses did not finish")
	}
	a.reportWithheld(ctx, w)
	return true
}

// maxMergedFacts is the number of facts in a request of a consolidation.
const maxMergedFacts = 40

// due reports whether rows are under suspicion, and the day's tokens are left to find those at fault.
func (a accuser) due(v sessions.View) bool {
	return v.Session.Suspicion != nil && !view.Spent(a.views.Choices.Settings(v.Session), v.Session)
}

// withholdFaulted marks events that the provider refused in a flush, which found them by halves.
func (a accuser) withholdFaulted(ctx context.Context, l sessions.Lease, faulted map[int64]error) {
	if len(faulted) == 0 {
		return
	}
	w := sessions.Withholding{Model: a.reads(l.Key), At: a.shared.Now(), Events: map[int64][]sessions.WithheldPart{}}
	for seq, fault := range faulted {
		w.Class, w.Events[seq] = string(llm.ClassOf(fault)), []sessions.WithheldPart{sessions.WithheldBody}
	}
	if err := a.withhold(ctx, l, w); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to mark messages that the provider refuses")
	}
}
