package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebb/bot/reload"
	"ebb/sessions"
)

const twoBots = `{
	"access": {"groups": ["cidA"], "deny": ["u9"]},
	"dingtalk": [
		{"name": "一", "client_id": "a", "client_secret": "${FIRST}"},
		{"name": "二", "client_id": "b", "client_secret": "s2", "prompt": "p", "model": "main", "tools": ["memory_search"], "access": {"people": ["u1"]}, "api_calls_per_month": 7},
	],
	"llm": {"models": [{"name": "main", "base_url": "http://127.0.0.1:1/v1", "model": "m", "api_key": "k"}]}}`

// Each bot has its own keys, and the defaults of the section for the others. The environment's credentials are not those of a list.
func TestSeveralBots(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string { return map[string]string{"FIRST": "s1", "DINGTALK_CLIENT_ID": "no"}[name] }
	cfg, err := parseConfig("f.jsonc", []byte(twoBots), getenv, NeedServe)
	if err != nil {
		t.Fatal(err)
	}
	a, b := cfg.DingTalk[0], cfg.DingTalk[1]
	if a.ClientID != "a" || a.ClientSecret.Reveal() != "s1" || a.APICallsPerMonth != 5000 || b.APICallsPerMonth != 7 || b.KeepAlive != a.KeepAlive {
		t.Errorf("%+v and %+v", a, b)
	}
	v := cfg.WithRobots(reload.Values{Admins: []sessions.UserID{"boss"}, Access: cfg.Access.Rules(nil)}).Robots
	own := v["b"]
	if v["a"].Name != "一" || v["a"].Access.People[0] != "*" || own.Common.Prompt != "p" || own.Common.Model != "main" || !slices.Equal(own.Common.Tools, []string{"memory_search"}) {
		t.Errorf("values %+v", own)
	}
	if r := own.Access; !slices.Equal(r.People, []string{"u1"}) || !slices.Equal(r.Groups, []string{"cidA"}) || !slices.Equal(r.Deny, []string{"u9"}) || len(r.Admins) != 1 {
		t.Errorf("access %+v", r)
	}
	printed, err := cfg.JSON()
	if err != nil || strings.Contains(string(printed), `"s1"`) || strings.Contains(string(printed), `"s2"`) {
		t.Fatalf("%v\n%s", err, printed)
	}
	again := strings.ReplaceAll(string(printed), `"***"`, `"x"`)
	read, err := parseConfig("printed.jsonc", []byte(again), getenv, NeedServe)
	if err != nil {
		t.Fatalf("the printed form is refused: %v", err)
	}
	for i := range read.DingTalk {
		read.DingTalk[i].ClientSecret = cfg.DingTalk[i].ClientSecret
	}
	if !reflect.DeepEqual(read.DingTalk, cfg.DingTalk) {
		t.Errorf("the printed form is read as %+v", read.DingTalk)
	}
}

// The settings of an only bot are for each code: that of its frames may be another one than its client id.
func TestOnlyBotHasItsSettingsForEachCode(t *testing.T) {
	t.Parallel()
	single, err := parseConfig("f.jsonc", []byte(`{"dingtalk": {"client_id": "a", "client_secret": "s", "prompt": "p", "access": {"people": ["u1"]}}}`), credentials(), NeedServe)
	if err != nil {
		t.Fatal(err)
	}
	v := single.WithRobots(reload.Values{Access: single.Access.Rules(nil)})
	for _, code := range []sessions.RobotCode{"a", "normal"} {
		if own := v.ForRobot(code); own.Common.Prompt != "p" || !slices.Equal(own.Access.People, []string{"u1"}) {
			t.Errorf("code %s: prompt %q, people %q", code, own.Common.Prompt, own.Access.People)
		}
	}
}

// A list of one is one bot, which needs no name. Faults have the place and the name that the file gives them.
func TestFaultsOfBots(t *testing.T) {
	t.Parallel()
	list := func(robots string) string { return `{"dingtalk": [` + robots + `]}` }
	const good = `{"name": "一", "client_id": "a", "client_secret": "s"}`
	for name, c := range map[string]struct{ text, want string }{
		"list of one":           {list(`{"client_id": "a", "client_secret": "s"}`), ""},
		"no bot":                {list(``), "dingtalk: got an empty list, want an object, or a list with at least one"},
		"a string":              {`{"dingtalk": "a"}`, "dingtalk: got a string, want an object, or a list of objects"},
		"a string in the list":  {list(good + `, "a"`), "dingtalk[1]: got a string, want an object"},
		"unknown key":           {list(good + `, {"nme": "x"}`), `dingtalk[1].nme: no such key, did you mean "name"?`},
		"no credentials":        {list(good + `, {"name": "二"}`), "dingtalk[1].client_id: is empty, want the Client ID"},
		"unset variable":        {list(good + `, {"name": "二", "client_id": "b", "client_secret": "${SECOND}"}`), "dingtalk[1].client_secret: is empty, want the Client Secret (AppSecret) of the DingTalk app: set SECOND in"},
		"another form":          {list(good + `, {"name": "二", "client_id": "$SECOND", "client_secret": "s"}`), "dingtalk[1].client_id: got the name of a variable in another form"},
		"the same name":         {list(good + `, {"name": "一", "client_id": "b", "client_secret": "s"}`), "dingtalk[1].name: got that of dingtalk[0] too"},
		"the same application":  {list(good + `, {"name": "二", "client_id": "a", "client_secret": "s"}`), "dingtalk[1].client_id: got that of dingtalk[0] too"},
		"mixed connections":     {list(good + `, {"name": "二", "client_id": "b", "client_secret": "s", "connections": "one"}`), `dingtalk[1].connections: got "one", want "all" as dingtalk[0] has`},
		"card without template": {list(good + `, {"name": "二", "client_id": "b", "client_secret": "s", "reply": "card"}`), "dingtalk[1].card_template_id: is empty"},
		"unknown tool":          {list(good + `, {"name": "二", "client_id": "b", "client_secret": "s", "tools": ["x"]}`), `dingtalk[1].tools[0]: got "x"`},
		"command of access":     {list(good + `, {"name": "二", "client_id": "b", "client_secret": "s", "access": {"commands": {"x": "admin"}}}`), "dingtalk[1].access.commands.x: no such command"},
		"type in access":        {`{"dingtalk": {"client_id": "b", "client_secret": "s", "access": {"people": 1}}}`, "dingtalk.access.people: got a number, want a list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseConfig("f.jsonc", []byte(c.text), env("LLM_API_KEY", "k"), NeedServe)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
