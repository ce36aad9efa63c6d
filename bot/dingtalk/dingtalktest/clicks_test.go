package dingtalktest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	sdkcard "github.com/open-dingtalk/dingtalk-stream-sdk-go/card"
	"github.com/open-dingtalk/dingtalk-stream-sdk-go/client"

	"ebb/bot/dingtalk/dingtalktest"
)

// clicked plays a click while another goroutine reads the callbacks and answers each with the data.
func (p platform) clicked(c raw, click dingtalktest.CardClick, data string, before func()) ([]dingtalktest.ClickAnswer, []frame, error) {
	p.t.Helper()
	type result struct {
		answers []dingtalktest.ClickAnswer
		err     error
	}
	done := make(chan result, 1)
	go func() {
		answers, err := p.ClickCard(ctx(p.t), click)
		done <- result{answers, err}
	}()
	var frames []frame
	for range max(click.Copies, 1) {
		f := c.read()
		frames = append(frames, f)
		if before != nil {
			before()
		}
		answer := f
		answer.Data = data
		c.ack(answer)
	}
	r := <-done
	return r.answers, frames, r.err
}

func TestClickPushesTheCallbackAndAppliesTheAnswer(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	p.create("c")
	c := dial(t, p.Server)
	answers, frames, err := p.clicked(c, dingtalktest.CardClick{TrackID: "c", UserID: "u1", Action: "good", Params: map[string]any{"turn": "t1"}},
		`{"response":{"cardUpdateOptions":{"updateCardDataByKey":true},"cardData":{"cardParamMap":{"state":"thanks"}},"userPrivateData":{"cardParamMap":{"mine":"1"}}}}`, nil)
	if err != nil || answers[0].Late || answers[0].Code != 200 || answers[0].Params["state"] != "thanks" {
		t.Fatalf("the answers are %+v: %v", answers, err)
	}
	var data struct{ Type, OutTrackID, UserID, SpaceType, SpaceID, CorpID, Extension, Content string }
	if err := json.Unmarshal([]byte(frames[0].Data), &data); err != nil || frames[0].Headers["topic"] != dingtalktest.TopicCard ||
		data.Type != "actionCallback" || data.OutTrackID != "c" || data.UserID != "u1" || data.SpaceType != "IM_GROUP" || data.SpaceID != "cidRelease" ||
		data.Content != `{"cardPrivateData":{"actionIds":["good"],"params":{"action":"good","turn":"t1"}}}` {
		t.Errorf("the callback is %+v: %v", data, err)
	}
	if k := p.card("c"); k.Params["state"] != "thanks" || k.Params["title"] != "Answer" || k.Private["u1"]["mine"] != "1" {
		t.Errorf("the card is %+v", k)
	}
	noViolations(t, p.Server)
}

func TestAnswersToClicksAreJudged(t *testing.T) {
	t.Parallel()
	late := func(p platform) func() { return func() { p.Advance(3 * time.Second) } }
	for name, tc := range map[string]struct {
		data   string
		before func(platform) func()
		kind   string
		title  string // the card's title afterwards
	}{
		"no change":     {`{"response":{}}`, nil, "", "Answer"},
		"null":          {`{"response":null}`, nil, "", "Answer"},
		"in place":      {`{"response":{"cardData":{"cardParamMap":{"state":"x"}}}}`, nil, "", ""},
		"late":          {`{"response":{"cardData":{"cardParamMap":{"state":"x"}}}}`, late, dingtalktest.CardCallbackSlow, "Answer"},
		"no response":   {`{}`, nil, dingtalktest.CardCallbackMalformed, "Answer"},
		"no JSON":       {`ok`, nil, dingtalktest.CardCallbackMalformed, "Answer"},
		"no strings":    {`{"response":{"cardData":{"cardParamMap":{"title":1}}}}`, nil, dingtalktest.CardCallbackMalformed, "Answer"},
		"bare response": {`"fine"`, nil, dingtalktest.CardCallbackMalformed, "Answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlatform(t, nil)
			p.create("c")
			var before func()
			if tc.before != nil {
				before = tc.before(p)
			}
			answers, _, err := p.clicked(dial(t, p.Server), dingtalktest.CardClick{TrackID: "c", UserID: "u1", Action: "good"}, tc.data, before)
			if err != nil || answers[0].Late != (tc.before != nil) || (answers[0].Fault != "") != (tc.kind == dingtalktest.CardCallbackMalformed) {
				t.Errorf("the answers are %+v: %v", answers, err)
			}
			if got := p.card("c").Params["title"]; got != tc.title {
				t.Errorf("the title is %q, want %q", got, tc.title)
			}
			if v := p.Violations(); tc.kind == "" && len(v) > 0 || tc.kind != "" && (len(v) != 1 || v[0].Kind != tc.kind || v[0].TrackID != "c") {
				t.Errorf("the violations are %v", v)
			}
		})
	}
}

func TestRareClicks(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	p.create("c")
	p.stream("c", "g", "done", finalize)
	if _, err := p.Click(ctx(t), "c", "u1", "stop"); err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("a click without a connection: %v", err)
	}
	c := dial(t, p.Server)
	for name, click := range map[string]dingtalktest.CardClick{
		"twice":            {TrackID: "c", UserID: "u1", Action: "good", Copies: 2},
		"by another":       {TrackID: "c", UserID: "u9", Action: "stop"},
		"on an alien card": {TrackID: "alien", UserID: "u1", Action: "stop", Unknown: true, Conversation: "cidRelease"},
	} {
		answers, frames, err := p.clicked(c, click, `{"response":{}}`, nil)
		if err != nil || len(answers) != max(click.Copies, 1) {
			t.Fatalf("%s: %+v, %v", name, answers, err)
		}
		if len(frames) == 2 && (frames[0].Data != frames[1].Data || frames[0].Headers["messageId"] == frames[1].Headers["messageId"]) {
			t.Errorf("the copies are %+v", frames)
		}
	}
	if _, err := p.Click(ctx(t), "none", "u1", "good"); err == nil {
		t.Error("a click on no card was pushed")
	}
	noViolations(t, p.Server)
	if _, err := p.Click(expired(), "c", "u1", "good"); err == nil {
		t.Error("a click without an answer has one")
	}
	unread := c.read() // it is sent for certain now
	p.Advance(3 * time.Second)
	if v := p.Violations(); len(v) != 1 || v[0].Kind != dingtalktest.CardCallbackSlow || unread.Headers["topic"] != dingtalktest.TopicCard {
		t.Errorf("the violations are %v", v)
	}
}

func TestClickIsLostWithItsConnection(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	p.create("c")
	c := dial(t, p.Server)
	failed := make(chan error, 1)
	go func() {
		_, err := p.Click(ctx(t), "c", "u1", "good")
		failed <- err
	}()
	c.read()
	p.Drop(dingtalktest.DropOptions{})
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "the connection ended") {
		t.Errorf("the click ended with %v", err)
	}
}

func TestQuoteOfACardNamesItsCarrier(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	p.create("c")
	c := dial(t, p.Server)
	k := p.card("c")
	p.Say(dingtalktest.Message{Conversation: "cidRelease", Sender: "u1", Text: "this one", Quote: dingtalktest.QuoteOf(k)})
	m := c.msg()
	text, _ := m["text"].(map[string]any)
	replied, _ := text["repliedMsg"].(map[string]any)
	if m["originalProcessQueryKey"] != k.ProcessQueryKey || replied["msgType"] != "interactiveCard" || replied["content"] != nil ||
		replied["senderId"] != m["chatbotUserId"] || fmt.Sprint(text["isReplyMsg"]) != "true" {
		t.Errorf("the quote is %v", m)
	}
}

func TestOfficialClientAnswersAClick(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, nil)
	p.create("c")
	cli := client.NewStreamClient(
		client.WithAppCredential(client.NewAppCredentialConfig("dingsimapp0001", "sim-secret")), client.WithOpenApiHost(p.URL))
	cli.RegisterCardCallbackRouter(func(_ context.Context, q *sdkcard.CardRequest) (*sdkcard.CardResponse, error) {
		return &sdkcard.CardResponse{
			CardUpdateOptions: &sdkcard.CardUpdateOptions{UpdateCardDataByKey: true},
			CardData:          &sdkcard.CardDataDto{CardParamMap: map[string]string{"state": q.UserId + " " + q.GetActionString("action")}},
		}, nil
	})
	if err := cli.Start(ctx(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cli.Close)
	if err := p.WaitConns(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	answer, err := p.Click(ctx(t), "c", "u1", "good")
	if err != nil || answer.Fault != "" || p.card("c").Params["state"] != "u1 good" || p.card("c").Params["title"] != "Answer" {
		t.Errorf("the answer is %+v: %v", answer, err)
	}
	noViolations(t, p.Server)
}
