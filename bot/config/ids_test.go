package config

import "testing"

// Group titles and nicks match no one where ids belong: an administrator without rights, a group that is not served, a person who is not
// denied. Each is refused at its place.
func TestNamesAreNoIDs(t *testing.T) {
	t.Parallel()
	const staff, chat = ", want a staff id, such as", ", want the id of a conversation, such as"
	for _, tt := range []errorCase{
		{"an administrator's nick", `{"agent": {"admins": ["boss", ^"张三"]}}`, `agent.admins[1]: got "张三"` + staff},
		{"a nick with a blank", `{"agent": {"admins": [^"Zhang San"]}}`, `agent.admins[0]: got "Zhang San"` + staff},
		{"a full-width id", `{"agent": {"admins": [^"ｂｏｓｓ"]}}`, `agent.admins[0]: got "ｂｏｓｓ"` + staff},
		{"an id with a line break", `{"agent": {"admins": [^"boss\n"]}}`, `agent.admins[0]: got "boss\n"` + staff},
		{"an administrator of a group", `{"groups": {"cidA": {"admins": [^"李娜"]}}}`, `groups.cidA.admins[0]: got "李娜"` + staff},
		{"a group's title as a key", `{"groups": {"支付群": ^{"language": "zh"}}}`, `groups."支付群": got "支付群"` + chat},
		{"a served group's title", `{"access": {"groups": [^"支付群"]}}`, `access.groups[0]: got "支付群"` + chat},
		{"a served person's nick", `{"access": {"people": ["*", ^"张 三"]}}`, `access.people[1]: got "张 三"` + staff},
		{"a denied person's nick", `{"access": {"deny": [^"张三"]}}`, `access.deny[0]: got "张三"` + staff},
		{"a long stop", "{\"shutdown\": {\"drain\": ^\"90s\", \"flush\": \"60s\"}}", "shutdown.drain: drain 1m30s and flush 1m, with 10s for the rest of a stop, take longer than shutdown.grace (1m): want at least 2m40s there"},
		{"a short grace period", `{"shutdown": {"grace": ^"30s"}}`, "shutdown.grace: drain 20s and flush 8s, with 10s"},
		{"a model's time", modelFile(`"timeout": ^"10m"`), "llm.models[0].timeout: got 10m, want at most agent.turn_timeout ("},
	} {
		t.Run(tt.name, tt.run)
	}
	for _, text := range []string{
		`{"agent": {"admins": ["manager4711", "0123456", "a.b-c_d@corp", "$:LWCP_v1:$abc=="]}, "groups": {"cidAbC+/12==": {"admins": ["u-1"]}}, "access": {"groups": ["*"], "people": ["*"]}}`,
		`{"shutdown": {"drain": "90s", "flush": "60s", "grace": "160s"}}`, modelFile(`"timeout": "1m"`), `{"agent": {"turn_timeout": "20s"}}`,
	} {
		if _, err := parseConfig("f.jsonc", []byte(text), env(), NeedNothing); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
