package gateway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebb/bot/config"
	"ebb/bot/tools"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// loaded reads a configuration file with two models and a text of further sections.
func loaded(t *testing.T, further string) (*config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bot.jsonc")
	text := `{"llm": {"default": "main", "models": [
		{"name": "main", "base_url": "http://127.0.0.1:1/v1", "api_key": "k", "model": "a"},
		{"name": "spare", "base_url": "http://127.0.0.1:1/v1", "api_key": "k", "model": "b", "temperature": 0}
	]}` + further + `}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(file, func(string) string { return "" }, config.NeedNothing)
}

// The values that change without a restart are those of the file. A model that is the chat's own is none to fall back to, and the tool
// of reminders goes with the reminders.
func TestValuesOfTheFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		further, summary string
		withheld         []string
		admins           int
	}{
		"nothing set":         {"", "", nil, 0},
		"summaries elsewhere": {`, "agent": {"compaction": {"model": "spare"}, "admins": ["u1", "u2"]}`, "spare", nil, 2},
		"summaries as chats":  {`, "agent": {"compaction": {"model": "main"}}`, "", nil, 0},
		"no reminders":        {`, "schedule": {"enabled": false}`, "", []string{tools.RemindTool}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := loaded(t, c.further)
			if err != nil {
				t.Fatal(err)
			}
			model, err := OpenModel(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			v := reloadable(cfg, model)
			if err := v.Validate(); err != nil {
				t.Error("the values are refused: ", err)
			}
			if v.SummaryModel != c.summary || !slices.Equal(v.Withheld, c.withheld) || len(v.Admins) != c.admins {
				t.Errorf("summaries by %q, without the tools %q, %d administrators", v.SummaryModel, v.Withheld, len(v.Admins))
			}
			if got := fmt.Sprint(v.Models); !strings.Contains(got, "main") || !strings.Contains(got, "spare") {
				t.Errorf("the models to choose from are %s", got)
			}
		})
	}
}

// Each fault of a file is a line of its own, and another error is one.
func TestFaultsOfAFile(t *testing.T) {
	t.Parallel()
	_, err := loaded(t, `, "agent": {"max_tool_rounds": -1}, "admin": {"listen": "nowhere"}, "surprise": 1`)
	found := listFaults(err)
	if len(found) != 3 {
		t.Fatalf("%d faults of %v", len(found), err)
	}
	for i, key := range []string{"max_tool_rounds", "listen", "surprise"} {
		if !slices.ContainsFunc(found, func(f error) bool {
			return strings.Contains(f.Error(), key) && strings.Contains(f.Error(), "bot.jsonc:")
		}) {
			t.Errorf("fault %d is not named with its place: %v", i, found)
		}
	}
	if other := errors.New("the disk is full"); !slices.Equal(listFaults(other), []error{other}) {
		t.Errorf("another error is %v", listFaults(other))
	}
}

// Without DingTalk no calls are counted, and the end of their watch waits for nothing.
func TestNoCallsWithoutDingTalk(t *testing.T) {
	t.Parallel()
	g := &gateway{}
	if g.callBudget() != nil {
		t.Error("there is a budget of calls")
	}
	g.watchCalls(t.Context())()
}

// A robot whose entry left the file runs until the restart, with its own access and name: the common access may admit more people. It keeps
// them at each further reload. An administrator who left the file has no rights there either, and its model is one that is not closed.
func TestRunningRobotKeepsItsAccess(t *testing.T) {
	t.Parallel()
	file := func(admin string, robots ...config.DingTalkConfig) *config.Config {
		cfg := config.Default()
		cfg.DingTalk, cfg.Agent.Admins = robots, []string{admin}
		return cfg
	}
	one := func(id, name string, people ...string) config.DingTalkConfig {
		return config.DingTalkConfig{ClientID: id, Name: name, Access: &config.AccessConfig{Groups: []string{"*"}, People: people}}
	}
	running := file("boss", one("a", "小甲", "*"), one("b", "小乙", "li")).DingTalk
	for round, next := range []*config.Config{
		file("boss", one("a", "小甲", "*"), one("b", "小二", "zhang")), file("heir", one("a", "小甲", "*"), one("c", "小丙", "*")), file("heir", one("c", "小丙", "*")),
	} {
		model, err := OpenModel(next)
		if err != nil {
			t.Fatal(err)
		}
		defer model.Close()
		running = newestOf(running, next.DingTalk)
		v := reloadable(withRobots(next, running), model)
		b := v.ForRobot("b")
		if b.Name != "小二" || !slices.Equal(b.Access.People, []string{"zhang"}) {
			t.Errorf("round %d: %s serves %q", round, b.Name, b.Access.People)
		}
		if want := []sessions.UserID{sessions.UserID(next.Agent.Admins[0])}; !slices.Equal(b.Admins, want) || !slices.Equal(b.Access.Admins, want) || b.Model != llm.Model(model) {
			t.Errorf("round %d: administrators are %q, with access %q", round, b.Admins, b.Access.Admins)
		}
		if a := v.ForRobot("a"); a.Name != "小甲" {
			t.Errorf("round %d: robot a is %q", round, a.Name)
		}
	}
}
