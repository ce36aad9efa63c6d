package dingtalktest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

const cardUpdates = "/v1.0/card/instances"

// platform is a simulator with one group, and calls of the open API with a token.
type platform struct {
	*dingtalktest.Server
	t   *testing.T
	tok string
}

func newPlatform(t *testing.T, change func(*dingtalktest.Options)) platform {
	t.Helper()
	o := still()
	o.APIQPS = dingtalktest.Unlimited
	if change != nil {
		change(&o)
	}
	s := dingtalktest.NewServer(t, o)
	s.AddGroup(dingtalktest.Group{ID: "cidRelease", Members: []string{"u1"}})
	return platform{s, t, token(t, s)}
}

// call makes a call of the open API and returns the status, 0 for no answer.
func (p platform) call(method, path, body string) int {
	p.t.Helper()
	req, err := http.NewRequestWithContext(ctx(p.t), method, p.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("x-acs-dingtalk-access-token", p.tok)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func (p platform) create(id string) int { return p.call("POST", createAndDeliver, groupCard(id)) }

func (p platform) stream(id, guid, content, flags string) int {
	return p.call("PUT", streaming, stream(id, guid, content, flags))
}

func (p platform) update(id, params, options string) int {
	return p.call("PUT", cardUpdates, fmt.Sprintf(`{"outTrackId":%q,"cardData":{"cardParamMap":%s}%s}`, id, params, options))
}

func (p platform) card(id string) dingtalktest.Card {
	p.t.Helper()
	for _, c := range p.Cards("") {
		if c.TrackID == id {
			return c
		}
	}
	p.t.Fatalf("there is no card %s", id)
	return dingtalktest.Card{}
}

func findings(c dingtalktest.Card) []string {
	var kinds []string
	for _, f := range c.Findings {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

const (
	finalize = `,"isFinalize":true`
	byKey    = `,"cardUpdateOptions":{"updateCardDataByKey":true}`
)

func TestMisuseOfACardIsAFinding(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		play    func(p platform)
		kind    string
		advice  bool
		content string
	}{
		"too long to be shown": {func(p platform) { p.stream("c", "g", strings.Repeat("长", 3001), finalize) }, dingtalktest.CardBlank, false, ""},
		"overwritten": {func(p platform) {
			p.stream("c", "g", "x", finalize)
			p.update("c", `{"title":"y"}`, "")
		}, dingtalktest.CardBlank, false, ""},
		"guid used again": {func(p platform) {
			p.stream("c", "g", "x", "")
			p.stream("c", "g", "xy", finalize)
			p.stream("c", "h", "xy", finalize)
		}, dingtalktest.CardGUIDReused, false, "xy"},
		"two ways to write": {func(p platform) {
			p.update("c", `{"content":"x"}`, byKey)
			p.stream("c", "g", "xy", finalize)
		}, dingtalktest.CardMixedWrites, false, "xy"},
		"open fence": {func(p platform) {
			p.stream("c", "g", "```go\nx := 1", "")
			p.stream("c", "h", "```go\nx := 1\n```", finalize)
		}, dingtalktest.CardBrokenMarkdown, false, "```go\nx := 1\n```"},
		"opened again": {func(p platform) {
			p.stream("c", "g", "x", finalize)
			p.update("c", `{"flowStatus":"2"}`, byKey)
			p.update("c", `{"flowStatus":"3"}`, byKey)
		}, dingtalktest.CardAfterFinalize, false, "x"},
		"long value": {func(p platform) {
			p.update("c", fmt.Sprintf(`{"content":%q,"flowStatus":"3"}`, strings.Repeat("x", 1025)), byKey)
		}, dingtalktest.CardOverLimit, true, strings.Repeat("x", 1025)},
		"unknown variable": {func(p platform) {
			p.call("POST", createAndDeliver, cardBody("d", "8aebdfb9-28f4-4a98-98f5-396c3dde41a0.schema", "dtv1.card//IM_GROUP.cidRelease", "imGroupOpenDeliverModel"))
			p.stream("d", "g", "x", finalize)
		}, dingtalktest.CardUnknownVariable, true, "x"},
		"no callback": {func(p platform) {
			p.call("POST", createAndDeliver, strings.Replace(groupCard("d"), "STREAM", "HTTP", 1))
			p.stream("d", "g", "x", finalize)
		}, dingtalktest.CardNoCallback, true, "x"},
		"mention of an outsider": {func(p platform) {
			p.call("POST", createAndDeliver, strings.Replace(groupCard("d"), `{"robotCode"`, `{"atUserIds":{"u9":"Zoe"},"robotCode"`, 1))
			p.stream("d", "g", "x", finalize)
		}, dingtalktest.ReplyWrongPlace, false, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, nil)
			p.create("c")
			tc.play(p)
			cards := p.Cards("")
			c := cards[len(cards)-1]
			if got := findings(c); !slices.Equal(got, []string{tc.kind}) || c.State != dingtalktest.CardFinished || c.Content != tc.content {
				t.Errorf("the card is %+v", c)
			}
			if n := len(p.Violations()); n > 0 == tc.advice {
				t.Errorf("%d violations", n)
			}
		})
	}
}

func TestDocumentedCardLimitsCanBeEnforced(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, func(o *dingtalktest.Options) { o.EnforceCardLimits = true })
	p.create("c")
	long := fmt.Sprintf(`{"content":%q}`, strings.Repeat("x", 1025))
	if status := p.update("c", long, byKey); status != http.StatusBadRequest {
		t.Errorf("a long value is answered with %d", status)
	}
	if status := p.call("POST", createAndDeliver, strings.Replace(groupCard("d"), `{"title":"Answer","content":""}`, long, 1)); status != http.StatusBadRequest {
		t.Errorf("a card with a long value is answered with %d", status)
	}
}

func TestMonthlyCallsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, func(o *dingtalktest.Options) { o.APIQPS = 2 })
	p.create("c")
	p.LeaveAPICalls(3)
	var got []int
	got = append(got, p.stream("c", "g1", "x", ""), p.stream("c", "g2", "xy", ""), p.stream("c", "g3", "xyz", "")) // the third is too fast
	p.Advance(2 * time.Second)
	p.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Final: true, Action: dingtalktest.Do("card-system-busy")})
	got = append(got, p.stream("c", "g4", "xyz", finalize), p.stream("c", "g4", "xyz", finalize)) // the refused one counts
	if want := []int{200, 200, 403, 500, 403}; !slices.Equal(got, want) {
		t.Errorf("answered %v, want %v", got, want)
	}
	if n := p.CallsCounted(); n[dingtalktest.RouteCardSend] != 1 || n[dingtalktest.RouteCardStream] != 3 || p.State().Apps[0].APICalls != 4 {
		t.Errorf("the calls counted are %v", n)
	}
	if c := p.card("c"); c.Calls != 4 || c.Frames != 2 || c.Done() || len(p.OpenCards()) != 1 {
		t.Errorf("the card is %+v", c)
	}
}

func TestLostAnswersAndRefusalsOfCards(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	p.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardSend, TrackID: "lost", Action: dingtalktest.Do("card-undelivered")})
	_, body := api(t, p.Server, p.tok, "POST", createAndDeliver, groupCard("lost"))
	if !strings.Contains(body, `"success":false`) || !strings.Contains(body, `"outTrackId":"lost"`) || len(p.OpenCards()) != 0 || len(p.Shown("cidRelease")) != 0 {
		t.Errorf("the delivery is answered with %s", body)
	}
	p.update("lost", `{"content":"unseen"}`, byKey)
	if len(p.Replies("")) != 0 {
		t.Error("a card that was not delivered is a reply")
	}
	p.create("c")
	p.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Final: true, Action: dingtalktest.Do("502-after")})
	first := p.stream("c", "g", "x", "")
	lost, again := p.stream("c", "end", "xy", finalize), p.stream("c", "end", "xy", finalize)
	if c := p.card("c"); first != 200 || lost != 502 || again != 200 || c.Frames != 2 || c.State != dingtalktest.CardFinished {
		t.Errorf("answered %d, %d, %d; the card is %+v", first, lost, again, c)
	}
	if status := p.stream("c", "more", "xyz", ""); status != http.StatusBadRequest {
		t.Errorf("a frame after the end is answered with %d", status)
	}
	waitViolation(t, p.Server, dingtalktest.CardAfterFinalize)
}

func TestConversationShowsMessagesAndCardsInOrder(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	p.call("POST", createAndDeliver, strings.Replace(groupCard("c"), `{"robotCode"`, `{"atUserIds":{"u1":"Ann"},"robotCode"`, 1))
	p.Advance(time.Second)
	url, _ := hook(t, p.Server, dingtalktest.Text("hello").In("cidRelease"))
	post(t, url, `{"msgtype":"text","text":{"content":"by webhook"}}`)
	p.Advance(time.Second)
	p.call("POST", groupSend, groupMessage("by open API"))
	p.stream("c", "g", "by card", finalize)
	p.create("gone")
	p.stream("gone", "g", "recalled", finalize)
	gone := p.card("gone").ProcessQueryKey
	p.call("POST", "/v1.0/robot/groupMessages/recall", fmt.Sprintf(`{"robotCode":"dingsimapp0001","openConversationId":"cidRelease","processQueryKeys":[%q]}`, gone))
	var got []string
	for _, s := range p.Shown("cidRelease") {
		got = append(got, s.Via+" "+s.Text+strings.Join(s.MentionedIDs, ","))
	}
	if want := []string{"card by cardu1", "webhook by webhook", "openapi by open API"}; !slices.Equal(got, want) {
		t.Errorf("shown are %q, want %q", got, want)
	}
	noViolations(t, p.Server)
	post(t, url, `{"msgtype":"text","text":{"content":"by card"}}`)
	waitViolation(t, p.Server, dingtalktest.ReplyTwice)
}

func TestLaterTextOfAnEndedCardIsItsReply(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	p.create("c")
	p.stream("c", "g", "", finalize)
	found := make(chan dingtalktest.Reply, 1)
	go func() {
		r, _ := p.WaitReply(ctx(t), "cidRelease", "whole")
		found <- r
	}()
	p.update("c", `{"content":"the whole text"}`, byKey)
	if r := <-found; r.Text != "the whole text" || r.ProcessQueryKey != p.card("c").ProcessQueryKey || len(p.Replies("")) != 1 {
		t.Errorf("the reply is %+v", r)
	}
	noViolations(t, p.Server)
}

func TestChangesOfCardsCanBeWatched(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	watching, stop := context.WithCancel(ctx(t))
	ended := make(chan struct{})
	texts := make(chan string, 10)
	go func() {
		defer close(ended)
		p.WatchCards(watching, "cidRelease", func(c dingtalktest.Card) { texts <- c.State + " " + c.Content })
	}()
	p.create("c")
	for _, step := range []struct{ content, flags, want string }{
		{"", "", "processing "}, {"Hel", "", "inputting Hel"}, {"Hello", finalize, "finished Hello"},
	} {
		if step.content != "" {
			p.stream("c", step.content, step.content, step.flags)
		}
		if got := <-texts; got != step.want {
			t.Errorf("saw %q, want %q", got, step.want)
		}
	}
	if c, err := p.WaitCard(ctx(t), "cidRelease", "a finished card", dingtalktest.Card.Done); err != nil || c.Content != "Hello" {
		t.Errorf("waited for %+v: %v", c, err)
	}
	stop()
	<-ended
}

func TestReactionsHaveNamesAndFailAtFirst(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, func(o *dingtalktest.Options) { o.EmotionFailures = 2 })
	_, id := hook(t, p.Server, dingtalktest.Text("hello").In("cidRelease"))
	react := func(route, name string) int {
		return p.call("POST", "/v1.0/robot/emotion/"+route, fmt.Sprintf(
			`{"robotCode":"dingsimapp0001","openMsgId":%q,"openConversationId":"cidRelease","emotionType":2,"emotionName":%q,
			"textEmotion":{"emotionId":"2659900","emotionName":%q,"text":%q,"backgroundId":"im_bg_1"}}`, id, name, name, name))
	}
	got := []int{react("reply", "🤔"), react("reply", "🤔"), react("reply", "🤔"), react("reply", "🥳"), react("recall", "🤔")}
	if want := []int{500, 500, 200, 200, 200}; !slices.Equal(got, want) || !slices.Equal(p.Emotions(id), []string{"🥳"}) {
		t.Errorf("answered %v, the reactions are %v", got, p.Emotions(id))
	}
}
