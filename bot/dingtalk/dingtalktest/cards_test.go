package dingtalktest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

func cardBody(id, template, space, deliver string) string {
	return fmt.Sprintf(`{"cardTemplateId":%q,"outTrackId":%q,"callbackType":"STREAM","cardData":{"cardParamMap":{"title":"Answer","content":""}},`+
		`"openSpaceId":%q,%q:{"robotCode":"dingsimapp0001"}}`, template, id, space, deliver)
}

func groupCard(id string) string {
	return cardBody(id, "tpl.schema", "dtv1.card//IM_GROUP.cidRelease", "imGroupOpenDeliverModel")
}

const (
	createAndDeliver = "/v1.0/card/instances/createAndDeliver"
	streaming        = "/v1.0/card/streaming"
)

func stream(id, guid, content, flags string) string {
	return fmt.Sprintf(`{"outTrackId":%q,"guid":%q,"key":"content","content":%q,"isFull":true%s}`, id, guid, content, flags)
}

func TestCardStreamsToItsEnd(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	s.AddGroup(dingtalktest.Group{ID: "cidRelease"})
	tok := token(t, s)
	if _, body := api(t, s, tok, "POST", createAndDeliver, groupCard("c1")); !strings.Contains(body, `"carrierId":"pqk`) {
		t.Fatalf("created with %s", body)
	}
	state := func() string { return s.Cards("")[0].State }
	if state() != dingtalktest.CardProcessing {
		t.Errorf("a new card is %s", state())
	}
	api(t, s, tok, "PUT", streaming, stream("c1", "g1", "Hel", ""))
	api(t, s, tok, "PUT", streaming, stream("c1", "g1", "Hel", ""))
	if state() != dingtalktest.CardInputting || s.Cards("")[0].Frames != 1 {
		t.Errorf("after one call, repeated, the card is %+v", s.Cards("")[0])
	}
	api(t, s, tok, "PUT", streaming, stream("c1", "g2", "Hello", `,"isFinalize":true`))
	if r := s.Replies("cidRelease"); state() != dingtalktest.CardFinished || len(r) != 1 || r[0].Text != "Hello" || r[0].Via != "card" {
		t.Errorf("the end is %s, replies %+v", state(), r)
	}
	noViolations(t, s)
	api(t, s, tok, "PUT", streaming, stream("c1", "g3", "more", ""))
	waitViolation(t, s, dingtalktest.CardAfterFinalize)
}

func TestCardLeftSpinningIsReported(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	s.AddGroup(dingtalktest.Group{ID: "cidRelease"})
	tok := token(t, s)
	api(t, s, tok, "POST", createAndDeliver, groupCard("c1"))
	api(t, s, tok, "POST", createAndDeliver, groupCard("c2"))
	api(t, s, tok, "PUT", streaming, stream("c2", "g1", "", `,"isError":true`))
	noViolations(t, s)
	s.Advance(2 * time.Minute)
	if v := s.Violations(); len(v) != 1 || v[0].Kind != dingtalktest.CardNotFinalized || !strings.Contains(v[0].Detail, "c1") {
		t.Errorf("the violations are %v", v)
	}
}

func TestCardErrors(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, func() dingtalktest.Options {
		o := still()
		o.APIQPS = dingtalktest.Unlimited
		o.CardTemplates = []dingtalktest.CardTemplate{
			{ID: "tpl.schema"}, {ID: "strict.schema", Variables: []string{"title"}}, {ID: "closed.schema", Unpublished: true},
		}
		return o
	}())
	s.AddGroup(dingtalktest.Group{ID: "cidRelease"})
	tok := token(t, s)
	api(t, s, tok, "POST", createAndDeliver, groupCard("there"))
	api(t, s, tok, "POST", createAndDeliver, cardBody("strict", "strict.schema", "dtv1.card//IM_GROUP.cidRelease", "imGroupOpenDeliverModel"))
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		contains           string
	}{
		"exists":             {"POST", createAndDeliver, groupCard("there"), 400, "param.cardAlreadyExist"},
		"no id":              {"POST", createAndDeliver, groupCard(""), 400, "param.outTrackIdEmpty"},
		"no template":        {"POST", createAndDeliver, cardBody("a", "", "dtv1.card//IM_GROUP.cidRelease", "imGroupOpenDeliverModel"), 400, "param.cardTemplateIdEmpty"},
		"unknown template":   {"POST", createAndDeliver, cardBody("a", "x", "dtv1.card//IM_GROUP.cidRelease", "imGroupOpenDeliverModel"), 400, "param.templateNotExist"},
		"no space":           {"POST", createAndDeliver, cardBody("a", "tpl.schema", "", "imGroupOpenDeliverModel"), 400, "param.openSpaceIdEmpty"},
		"strange space":      {"POST", createAndDeliver, cardBody("a", "tpl.schema", "dtv1.card//MOON.1", "imGroupOpenDeliverModel"), 400, "param.openSpaceIdInvalid"},
		"no model":           {"POST", createAndDeliver, cardBody("a", "tpl.schema", "dtv1.card//IM_GROUP.cidRelease", "other"), 400, "param.openDeliverModelEmpty"},
		"failure in a 200":   {"POST", createAndDeliver, cardBody("f", "tpl.schema", "dtv1.card//IM_GROUP.cidNone", "imGroupOpenDeliverModel"), 200, `"success":false`},
		"update unknown":     {"PUT", "/v1.0/card/instances", `{"outTrackId":"no","cardData":{"cardParamMap":{}}}`, 400, "param.cardNotExist"},
		"update nothing":     {"PUT", "/v1.0/card/instances", `{"outTrackId":"there"}`, 400, "BothEmpty"},
		"stream unknown":     {"PUT", streaming, stream("no", "g", "x", ""), 400, "param.stream.outTrackId"},
		"stream no guid":     {"PUT", streaming, stream("there", "", "x", ""), 400, "param.stream.guidEmpty"},
		"stream no content":  {"PUT", streaming, stream("there", "g", "", ""), 400, "param.stream.contentEmpty"},
		"stream too much":    {"PUT", streaming, stream("there", "g", strings.Repeat("x", 30000), ""), 400, "param.stream.content"},
		"stream other key":   {"PUT", streaming, strings.Replace(stream("strict", "g", "x", ""), `"key":"content"`, `"key":"text"`, 1), 500, "unknownError"},
		"stream appends":     {"PUT", streaming, strings.Replace(stream("there", "g", "x", ""), `"isFull":true`, `"isFull":false`, 1), 400, "param.stream.isFull"},
		"closed template":    {"POST", createAndDeliver, cardBody("a", "closed.schema", "dtv1.card//IM_GROUP.cidRelease", "imGroupOpenDeliverModel"), 400, "param.templateUnpublished"},
		"number as a value":  {"POST", createAndDeliver, strings.Replace(groupCard("a"), `"Answer"`, "1", 1), 400, "param.invalid"},
		"strange callback":   {"POST", createAndDeliver, strings.Replace(groupCard("a"), "STREAM", "PIPE", 1), 400, "param.invalid"},
		"another robot":      {"POST", createAndDeliver, strings.Replace(groupCard("a"), "dingsimapp0001", "other", 1), 400, "param.openDeliverModelError"},
		"model of a group":   {"POST", createAndDeliver, cardBody("a", "tpl.schema", "dtv1.card//IM_ROBOT.u1", "imGroupOpenDeliverModel"), 400, "param.openDeliverModelError"},
		"model without type": {"POST", createAndDeliver, cardBody("a", "tpl.schema", "dtv1.card//IM_ROBOT.u1", "imRobotOpenDeliverModel"), 400, "param.openDeliverModelError"},
		"no prefix":          {"POST", createAndDeliver, cardBody("a", "tpl.schema", "IM_GROUP.cidRelease", "imGroupOpenDeliverModel"), 400, "param.openSpaceIdInvalid"},
		"deliver unknown":    {"POST", "/v1.0/card/instances/deliver", `{"outTrackId":"no"}`, 400, "param.cardNotExist"},
		"made but not there": {"POST", "/v1.0/card/instances", `{"outTrackId":"split","cardTemplateId":"tpl.schema","cardData":{}}`, 200, `"result":"split"`},
	} {
		t.Run(name, func(t *testing.T) {
			if status, body := api(t, s, tok, tc.method, tc.path, tc.body); status != tc.status || !strings.Contains(body, tc.contains) {
				t.Errorf("answered %d %s", status, body)
			}
		})
	}
	noViolations(t, s)
}

func TestUpdateReplacesOrMerges(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	s.AddGroup(dingtalktest.Group{ID: "cidRelease"})
	tok := token(t, s)
	api(t, s, tok, "POST", createAndDeliver, groupCard("c1"))
	put := func(params, options string) map[string]string {
		api(t, s, tok, "PUT", "/v1.0/card/instances", `{"outTrackId":"c1","cardData":{"cardParamMap":`+params+`}`+options+`}`)
		return s.Cards("")[0].Params
	}
	if p := put(`{"content":"x"}`, `,"cardUpdateOptions":{"updateCardDataByKey":true}`); p["title"] != "Answer" || p["content"] != "x" {
		t.Errorf("merged: %v", p)
	}
	if p := put(`{"content":"y","flowStatus":"3"}`, ""); p["title"] != "" || p["content"] != "y" || s.Cards("")[0].State != dingtalktest.CardFinished {
		t.Errorf("replaced: %v, %s", p, s.Cards("")[0].State)
	}
}
