package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

// cardTemplate is the template of the scenarios.
const cardTemplate = "ebb.schema"

// scriptTemplates are that one, one with another variable for the text, and one that is not published.
var scriptTemplates = []dingtalktest.CardTemplate{
	{ID: cardTemplate}, {ID: "other.schema", Content: "answer", Variables: []string{"stop", "feedback"}}, {ID: "closed.schema", Unpublished: true},
}

// useCards makes the replicas reply on cards.
func (w *world) cmdCards(args []string) error {
	d := w.config["dingtalk"].(map[string]any)
	d["reply"], d["card_template_id"], d["card_interval"] = "card", cardTemplate, "100ms"
	return nil
}

// cmdCard is: CONV STATE [TEXT]. It waits for a card in the state that shows the text.
func (w *world) cmdCard(args []string) error {
	want := strings.Join(args[2:], " ")
	return w.until(fmt.Sprintf("a card in %s that is %s with %q", args[0], args[1], want), patience, func() (bool, string) {
		in := w.conversation(args[0])
		if args[0] == "any" {
			in = ""
		}
		cards := w.ding.Cards(in)
		ok := slices.ContainsFunc(cards, func(c dingtalktest.Card) bool { return c.State == args[1] && hasWord(c.Content+" ", cardWord(want)) })
		return ok, describeCards(cards)
	})
}

// cardWord is the text to look for; each card has the empty one.
func cardWord(want string) string {
	if want == "" {
		return " "
	}
	return want
}

func describeCards(cards []dingtalktest.Card) string {
	var out []string
	for _, c := range cards {
		out = append(out, fmt.Sprintf("%s %q (%d frames, %d calls)", c.State, clipped(c.Content), c.Frames, c.Calls))
	}
	return "cards " + strings.Join(out, ", ")
}

// cmdCardOpened is: CONV MSGID WITHIN. After the message, the conversation got a card within the time.
func (w *world) cmdCardOpened(args []string) error {
	return w.checkWithin(args[2], "the card after "+args[1], func(e dingtalktest.Entry) bool { return e.MsgID == args[1] && e.Kind == "say" },
		func(e dingtalktest.Entry) bool {
			return e.Conversation == w.conversation(args[0]) && e.Kind == "card" && strings.HasSuffix(e.Detail, " delivered")
		})
}

// checkWithin checks the time between two entries of the transcript: the first that begins, and the next that ends.
func (w *world) checkWithin(limit, what string, begins, ends func(dingtalktest.Entry) bool) error {
	within, err := time.ParseDuration(limit)
	if err != nil {
		return err
	}
	all := w.ding.Transcript()
	begin := slices.IndexFunc(all, begins)
	if begin < 0 {
		return fmt.Errorf("%s: the message was not sent", what)
	}
	end := slices.IndexFunc(all[begin:], ends)
	if end < 0 {
		return fmt.Errorf("%s did not come", what)
	}
	if took := all[begin+end].Time.Sub(all[begin].Time); took > within {
		return fmt.Errorf("%s took %s, want at most %s", what, took, within)
	}
	return nil
}

// cmdCardsEnded is: CONV N. When all is settled, the conversation has N cards, and each has ended.
func (w *world) cmdCardsEnded(args []string) error {
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	return w.until(fmt.Sprintf("%d cards in %s, all ended", want, args[0]), patience, func() (bool, string) {
		cards := w.ding.Cards(w.conversation(args[0]))
		done := 0
		for _, c := range cards {
			if c.Done() {
				done++
			}
		}
		return done == want && len(cards) == want, describeCards(cards)
	})
}

// cmdWhole is: N. When all is settled, N typed answers were shown to their end, each once, and no card is open.
func (w *world) cmdWhole(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	each := w.main.sentencesOfAnswer()
	return w.until(args[0]+" whole answers and no open card", patience, func() (bool, string) {
		whole, sentences := 0, 0
		for _, r := range w.ding.Replies("") {
			whole += strings.Count(r.Text, typedEnd)
			sentences += strings.Count(r.Text, typedSentence)
		}
		open := w.ding.OpenCards()
		return whole == want && sentences == want*each && len(open) == 0,
			fmt.Sprintf("%d ends and %d sentences, %d in each answer, open %s", whole, sentences, each, describeCards(open))
	})
}

// cmdCardFault is: create|stream|final WHAT [N]. The next N such calls go wrong.
func (w *world) cmdCardFault(args []string) error {
	f := dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Count: 1}
	switch args[0] {
	case "create":
		f.Route = dingtalktest.RouteCardSend
	case "final":
		f.Final = true
	}
	if len(args) > 2 {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		f.Count = n
	}
	var err error
	if f.Action, err = apiFault(args[1]); err != nil {
		return err
	}
	w.cardFaults[w.ding.AddFault(f)] = f
	return nil
}

// cmdStruck waits until the faults of cards have happened.
func (w *world) cmdStruck([]string) error {
	return w.until("the faults of cards", patience, func() (bool, string) {
		for id, f := range w.cardFaults {
			if n := w.ding.FaultFired(id); n != f.Count {
				return false, fmt.Sprintf("the fault %s of %s happened %d times, want %d", f.Action, f.Route, n, f.Count)
			}
		}
		return true, ""
	})
}

// cmdClick is: CONV NICK[@CORP] ACTION [ANSWER]. A person clicks on a button of the conversation's newest card; with CORP, a person of
// another organization who has the same id there.
func (w *world) cmdClick(args []string) error {
	cards := w.ding.Cards(w.conversation(args[0]))
	if len(cards) == 0 {
		return fmt.Errorf("%s has no card", args[0])
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	nick, corp, _ := strings.Cut(args[1], "@")
	answers, err := w.ding.ClickCard(ctx, dingtalktest.CardClick{TrackID: cards[len(cards)-1].TrackID, UserID: w.person(nick), Action: args[2], CorpID: corp})
	if err != nil {
		return err
	}
	a := answers[0]
	if a.Late || a.Fault != "" {
		return fmt.Errorf("answered %q after %s, fault %q", a.Data, a.Took, a.Fault)
	}
	if want := strings.Join(args[3:], " "); !strings.Contains(a.Data, want) {
		return fmt.Errorf("answered %q, want %q", a.Data, want)
	}
	return nil
}

// cmdCalls is: left N, or below N: the calls that the month has left, and a bound of those that were counted.
func (w *world) cmdCalls(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if args[0] == "left" {
		w.ding.LeaveAPICalls(n)
		return nil
	}
	total := 0
	for _, calls := range w.ding.CallsCounted() {
		total += calls
	}
	if total > n {
		return fmt.Errorf("%d calls were counted, want at most %d: %v", total, n, w.ding.CallsCounted())
	}
	return nil
}

// cmdMark is: MSGID [WITHIN]. It waits for the thinking mark on a message. WITHIN bounds the time since the message was sent.
func (w *world) cmdMark(args []string) error {
	if err := w.until("a mark on "+args[0], patience, func() (bool, string) {
		return w.ding.Emotion(args[0]), fmt.Sprintf("marks are on %v", w.ding.EmotionsLeft())
	}); err != nil || len(args) == 1 {
		return err
	}
	return w.checkWithin(args[1], "the mark on "+args[0], func(e dingtalktest.Entry) bool { return e.MsgID == args[0] && e.Kind == "say" },
		func(e dingtalktest.Entry) bool { return e.MsgID == args[0] && e.Kind == "emotion" })
}

// cmdNotMark is: MSGID. It waits until no mark is on a message.
func (w *world) cmdNotMark(args []string) error {
	return w.until("no mark on "+args[0], patience, func() (bool, string) {
		return !w.ding.Emotion(args[0]), fmt.Sprintf("marks are on %v", w.ding.EmotionsLeft())
	})
}

// cmdMarks is: N. When all is settled, N marks were set, and all are removed.
func (w *world) cmdMarks(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	return w.until(args[0]+" marks, all removed", patience, func() (bool, string) {
		set := 0
		for _, e := range w.ding.Transcript() {
			if e.Kind == "emotion" && e.Route == dingtalktest.RouteEmotion {
				set++
			}
		}
		left := w.ding.EmotionsLeft()
		return set == want && len(left) == 0, fmt.Sprintf("%d were set, left are %v", set, left)
	})
}

// apiFault is what goes wrong with a call: a status, lost, undelivered, or a named action.
func apiFault(what string) (dingtalktest.Action, error) {
	switch status, err := strconv.Atoi(what); {
	case what == "undelivered":
		return dingtalktest.Action{Card: what}, nil
	case what == "lost": // it takes effect, and its answer gets lost
		return dingtalktest.Action{Effect: true, Cut: dingtalktest.CutReset}, nil
	case err == nil:
		return dingtalktest.Action{Status: status, Body: `{"code":"system.busy","message":"refused by the scenario"}`}, nil
	case slices.Contains(dingtalktest.ActionNames(), what):
		return dingtalktest.Do(what), nil
	}
	return dingtalktest.Action{}, fmt.Errorf("no fault %q", what)
}

// cmdEmotion is: fault [recall] WHAT. The next call that sets, or removes, a mark goes wrong.
func (w *world) cmdEmotion(args []string) error {
	f := dingtalktest.Fault{Route: dingtalktest.RouteEmotion, Count: 1}
	if args[1] == "recall" {
		f.Route = dingtalktest.RouteEmotionRecall
	}
	var err error
	if f.Action, err = apiFault(args[len(args)-1]); err == nil {
		w.ding.AddFault(f)
	}
	return err
}

// cmdShown is: TEXT. A frame of a card began with text that has it.
func (w *world) cmdShown(args []string) error {
	if !w.framed(args[0]) {
		return fmt.Errorf("no frame of a card has %q", args[0])
	}
	return nil
}

func (w *world) cmdFrom([]string) error {
	w.framesFrom = len(w.ding.Transcript())
	return nil
}

func (w *world) cmdNotShown(args []string) error {
	if w.framed(args[0]) {
		return fmt.Errorf("a frame of a card has %q", args[0])
	}
	return nil
}

func (w *world) framed(text string) bool {
	return slices.ContainsFunc(w.ding.Transcript()[w.framesFrom:], func(e dingtalktest.Entry) bool { return e.Kind == "card" && strings.Contains(e.Detail, text) })
}
