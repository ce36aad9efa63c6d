package config

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"regexp"
	"testing"

	"ebb/bot/config/strict"
)

// FuzzLoad states that no file makes Load panic. Everything that Load refuses has a place inside the file. Everything
// that it accepts can be printed and accepted again with the same meaning.
func FuzzLoad(f *testing.F) {
	reference, err := os.ReadFile(referencePath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reference)
	for _, seed := range []string{
		"", "{}", "[", `{"llm":{"models":[{}]}}`, `{"a":1,"a":2}`, `{"log":{"level":"${X:-info}"}}`, "{\"\\u0000\":\"\xff\"}",
		`{"shutdown":{"drain":1e9,"flush":"1h"}}`, `{"agent":{"compaction":{"reserve_tokens":-1}}}`, "\xef\xbb\xbf{}", "// x\n{/**/}",
		`{"agent":{"compaction":{"policy":"turns","full_context_turns":2}},"groups":{"cid=":{"compaction":{"policy":"offload","keep_last":null}},"b":{"compaction":{"cooldown":1.5}}}}`,
		`{"agent":{"contextWindow":{"fullContextTurns":3},"compaction":{"policy":"sliding_window","tail_keep_size":80,"mode":"prune_only"}}}`,
		`{"agent":{"prompt":"$${x} ${Y}"},"database":{"url":"postgres://u:p@h/d?x=y"}}`,
	} {
		f.Add([]byte(seed))
	}
	place := regexp.MustCompile(`^f\.jsonc:[1-9]\d*:[1-9]\d*: `)
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := parseConfig("f.jsonc", data, env("X", "1"), NeedServe)
		if err != nil {
			var config *strict.Error
			if !errors.As(err, &config) || len(config.Fields) == 0 {
				t.Fatalf("got %v, want an Error with fields", err)
			}
			for _, field := range config.Fields {
				if !place.MatchString(field.Error()) {
					t.Errorf("%q has no place", field)
				}
			}
			return
		}
		assertPrintsAsLoaded(t, cfg)
	})
}

func assertPrintsAsLoaded(t *testing.T, cfg *Config) {
	t.Helper()
	out, err := cfg.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseConfig("printed.json", out, env("X", "1"), NeedNothing)
	if err != nil {
		t.Fatalf("loading what was printed: %v\n%s", err, out)
	}
	if want := cfg.inForce(); !reflect.DeepEqual(again.Agent.Compaction, want.Agent.Compaction) || again.Shutdown != cfg.Shutdown {
		t.Errorf("printed and loaded again: %+v, want %+v", again, want)
	}
	if twice, err := again.JSON(); err != nil || !bytes.Equal(twice, out) {
		t.Errorf("printed twice, it is\n%s\nwant\n%s", twice, out)
	}
}
