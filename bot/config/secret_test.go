package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	cfg := Default()
	cfg.DingTalk[0].ClientSecret = "hunter2"
	cfg.LLM.Models[0].APIKey = "hunter2"
	cfg.Admin.Token = "hunter2"
	cfg.Database.URL = "postgres://ebb:hunter2@db:5432/ebb"

	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T %v"} {
		shown = append(shown, fmt.Sprintf(verb, cfg.Admin.Token), fmt.Sprintf(verb, cfg.Database.URL), fmt.Sprintf(verb, *cfg))
	}
	encoded, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := cfg.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := zerolog.New(&log)
	logger.Info().Any("config", cfg).Stringer("token", cfg.Admin.Token).Msg("config")
	shown = append(shown, string(encoded), string(printed), log.String())
	for _, s := range shown {
		if strings.Contains(s, "hunter2") || strings.Contains(s, "68756e746572") { // the second is %x of it
			t.Errorf("a secret is shown: %s", s)
		}
	}
	for _, want := range []string{`"token": "***"`, `"client_secret": "***"`, `"url": "postgres://ebb:***@db:5432/ebb"`} {
		if !strings.Contains(string(printed), want) {
			t.Errorf("%s is not in\n%s", want, printed)
		}
	}
	if cfg.Admin.Token.Reveal() != "hunter2" || cfg.Database.URL.Reveal() != "postgres://ebb:hunter2@db:5432/ebb" {
		t.Error("Reveal does not return what was set")
	}
}

func TestDSNString(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"postgres://h:5432/d", "postgres://h:5432/d"},
		{"postgres://u@h/d", "postgres://u@h/d"},
		{"postgres://u:pw@h/d?sslmode=disable", "postgres://u:***@h/d?sslmode=disable"},
		{"postgresql://u:p%40w@h/d", "postgresql://u:***@h/d"},
		{"postgres://u:p/w@h/d", "postgres://u:***@h/d"}, // not a URL any more, and its password all the same
		{"postgres://u:p@w@h/d", "postgres://u:***@h/d"},
		{"postgres://h/d?user=u&password=pw&sslpassword=x", "postgres://h/d?user=u&password=***&sslpassword=***"},
		{"host=h user=u password=pw dbname=d", "host=h user=u password=*** dbname=d"},
		{"host=h password = 'a b\\'c' dbname=d", "host=h password = *** dbname=d"},
		{"host=h PASSWORD=pw", "host=h PASSWORD=***"},
		{`host=h password=SE\ SECRETX dbname=d`, "host=h password=*** dbname=d"},
		{`password=a\\ dbname=d`, "password=*** dbname=d"}, // an escaped backslash, then the end
	} {
		if got := DSN(tt.in).String(); got != tt.want {
			t.Errorf("%q prints as %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestEndpointString(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"https://h/v1", "https://h/v1"},
		{"https://h/v1?key=SECRET", "https://h/v1?key=***"},
		{"https://h/v1?api-version=2&key=SECRET&", "https://h/v1?api-version=***&key=***&"},
		{"https://h/v1?SECRET", "https://h/v1?***"},
		{"https://u:SECRET@h/v1", "https://u:***@h/v1"},
	} {
		if got := Endpoint(tt.in).String(); got != tt.want {
			t.Errorf("%q prints as %q, want %q", tt.in, got, tt.want)
		}
	}
}

// The arguments of a program may be an address with a password: a printed configuration shows none.
func TestArgumentsAreNotPrinted(t *testing.T) {
	t.Parallel()
	cfg := mustParse(t, `{"tools": {"mcp": [{"name": "db", "command": "pgserver", "args": ["postgres://reader:db-password@db/docs"]}]}}`)
	text, err := cfg.JSON()
	if err != nil || strings.Contains(string(text), "db-password") {
		t.Errorf("%v: printed as %s", err, text)
	}
	if got := cfg.Tools.Servers()[0].Args; len(got) != 1 || got[0] != "postgres://reader:db-password@db/docs" {
		t.Errorf("the program gets %q", got)
	}
}
