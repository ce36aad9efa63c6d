package config

import (
	"fmt"
	"strings"
	"testing"

	"ebb/sessions"
)

// groupsFile is a config with these entries of groups.
func groupsFile(entries string) string { return fmt.Sprintf(`{"groups": {%s}}`, entries) }

func TestLoadRefusesGroups(t *testing.T) {
	t.Parallel()
	for _, tt := range []errorCase{
		{"no object", `{"groups": ^["cid"]}`, "groups: got a list, want an object"},
		{"no object in it", groupsFile(`"cid": ^"en"`), "groups.cid: got a string, want an object"},
		{"empty id", groupsFile(`"": ^{}`), `groups."": got an empty key, want the id of a conversation`},
		{"repeated id", groupsFile(`"cid": {}, ^"cid": {}`), "groups.cid: given twice"},
		{"unknown key", groupsFile(`"cid": {^"tool": []}`), `groups.cid.tool: no such key, did you mean "tools"?`},
		{"scope", groupsFile(`"cid==": {"session_scope": ^"all"}`), `groups."cid==".session_scope: got "all", want "group" or "member"`},
		{"language", groupsFile(`"cid": {"language": ^"fr"}`), `groups.cid.language: got "fr", want "zh" or "en"`},
		{"model", groupsFile(`"cid": {"model": ^"gpt"}`), `groups.cid.model: got "gpt", want the name of a model in llm.models: "main"`},
		{"policy", groupsFile(`"cid": {"policy": ^"turn"}`), `groups.cid.policy: got "turn", want "archive" or `},
		{"tool", groupsFile(`"cid": {"tools": ["memory_get", ^"memory_drop"]}`), `groups.cid.tools[1]: got "memory_drop", want "memory_save" or `},
		{"compaction", groupsFile(`"cid": {"compaction": ^[]}`), "groups.cid.compaction: got a list, want an object"},
		{"tools", groupsFile(`"cid": {"tools": ^"memory_get"}`), "groups.cid.tools: got a string, want a list"},
		{
			"policy twice", groupsFile(`"cid": {"compaction": {"policy": "turns"}, "policy": ^"archive"}`),
			"groups.cid.policy: given as groups.cid.compaction.policy too, want one of the two",
		},
	} {
		t.Run(tt.name, tt.run)
	}
}

// A group's policy stands on the other rules of the conversation, in the file and under its own settings. Flags replace it.
func TestPolicyOfAGroup(t *testing.T) {
	t.Parallel()
	text := `{"agent": {"compaction": {"auto_compact_threshold": 40000}},
		"groups": {"a": {"policy": "turns", "compaction": {"auto_compact_threshold": 9000}}, "b": {"policy": "archive"}, "c": {"language": "en"}}}`
	cfg := mustParse(t, text)
	_, groups := cfg.Policies()
	a, b := groups["a"], groups["b"]
	if len(groups) != 2 || a.Policy.Name != "turns" || a.Window.Threshold != 9000 || b.Policy.Name != "archive" || b.Window.Threshold != 40000 {
		t.Errorf("got %+v and %+v", a, b)
	}
	own, err := cfg.Own("a", `{"full_context_turns": 7}`)
	if err != nil || own.Policy.Name != "turns" || own.Policy.TailTurns != 7 {
		t.Errorf("got %+v and %v, want the group's policy with the conversation's own rule", own.Policy, err)
	}
	out, err := cfg.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseConfig("printed.jsonc", out, env(), NeedNothing)
	if err != nil {
		t.Fatalf("the printed config is refused: %v", err)
	}
	if _, groups := again.Policies(); groups["a"].Policy.Name != "turns" || groups["b"].Policy.Name != "archive" {
		t.Errorf("the printed config has other policies: %+v", groups)
	}
	flagged, err := parseConfig("f.jsonc", []byte(text), env(), NeedNothing, Override{Flag: "--policy", Key: "policy", Set: func(s *CompactionSettings) { s.Policy = "balanced" }})
	if err != nil {
		t.Fatal(err)
	}
	if common, groups := flagged.Policies(); common.Policy.Name != "balanced" || groups["a"].Policy.Name != "balanced" {
		t.Errorf("got %s and %s under the flag, want balanced", common.Policy.Name, groups["a"].Policy.Name)
	}
}

func TestGroupSettings(t *testing.T) {
	t.Parallel()
	cfg := mustParse(t, groupsFile(`"cidA==": {"session_scope": "member", "language": "en", "prompt": "p", "model": "main", "tools": ["memory_get"]}, "cida==": {}`))
	got := cfg.GroupSettings()
	if g := got["cidA=="]; g.Scope != sessions.ScopeMember || g.Language != "en" || g.Prompt != "p" || g.Model != "main" || strings.Join(g.Tools, " ") != "memory_get" {
		t.Errorf("got %+v", g)
	}
	if g, ok := got["cida=="]; !ok || g.Scope != "" {
		t.Errorf("ids are not case-sensitive: %+v", got)
	}
}
