// Package setup asks for the values that a first configuration needs, and writes it. Secrets stay where they are, in the environment or in
// a file; those that are typed go to files that only their owner reads. The configuration has references to them.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ebb/bot/config"
)

// Given has the values of the command line; empty: none. Those that end with File are the paths of files with secrets.
type Given struct {
	ClientID, ClientSecretFile string
	BaseURL, Model, APIKeyFile string
	DatabaseURLFile            string
	APIBase                    string // another server of DingTalk; never asked for
}

// Setup writes a configuration to the file Path.
type Setup struct {
	Path   string
	Given  Given
	Force  bool // replaces the configuration and the files of secrets that are there
	Getenv func(string) string
	Out    io.Writer
	Ask    Asker
}

// Asker asks a person on a terminal. Hidden answers are never shown.
type Asker interface {
	Ask(ctx context.Context, question string, hidden bool) (string, error)
}

// NoTerminal is an [Asker] where no person can answer.
type NoTerminal struct{}

var errNoTerminal = errors.New("there is no terminal")

// Ask implements [Asker].
func (NoTerminal) Ask(context.Context, string, bool) (string, error) { return "", errNoTerminal }

// MissingError lists values without a source, where no person can answer.
type MissingError []string

// Error has one line for each value.
func (e MissingError) Error() string {
	return "there is no terminal to ask for the missing values:\n" + strings.Join(e, "\n")
}

// ErrExists is returned for a file that is there already.
var ErrExists = errors.New("there is a configuration already")

// ErrPlace is returned where no configuration can be written. Nothing was asked for.
var ErrPlace = errors.New("the configuration can't be written")

// question is one value of the configuration.
type question struct {
	name     string // also that of a file with the value
	text     string
	given    string // text of the file, as it stands; or the path of a file, for a secret
	variable string // an environment variable; empty: none
	preset   string // the answer of an empty line
	optional bool
	secret   bool
	flag     string
}

// Bounds of a dialog.
const (
	maxTries  = 3
	secretDir = "secrets"
)

// Run asks, writes and checks. Nothing is written before all answers are there, and no configuration that has a fault.
func (s Setup) Run(ctx context.Context) error {
	if err := s.checkPlace(); err != nil {
		return err
	}
	answers, typed := map[string]string{}, map[string]string{}
	var missing MissingError
	for _, q := range s.questions() {
		if q.name == "llm_api_key" { // servers of one's own take any
			q.optional = answers["base_url"] != config.Default().LLM.Models[0].BaseURL.Reveal()
		}
		switch value, found, err := s.known(q); {
		case err != nil:
			return err
		case found:
			answers[q.name] = value
			continue
		}
		answer, err := s.ask(ctx, q)
		switch {
		case errors.Is(err, errNoTerminal) && (q.optional || q.preset != ""):
			answers[q.name] = q.preset
			continue
		case errors.Is(err, errNoTerminal):
			missing = append(missing, fmt.Sprintf("%s: %s", q.name, q.sources()))
			continue
		case err != nil:
			return err
		}
		answers[q.name] = strings.ReplaceAll(answer, "${", "$${")
		if q.secret && answer != "" {
			path, err := s.secretPath(q.name)
			if err != nil {
				return err
			}
			typed[path], answers[q.name] = answer, "${file:"+path+"}"
		}
	}
	if len(missing) > 0 {
		return missing
	}
	return s.write(answers, typed)
}

// checkPlace finds what would fail at the end: a person types secrets only for a file that can be written.
func (s Setup) checkPlace() error {
	there, err := os.Stat(s.Path)
	if err == nil && there.IsDir() {
		return fmt.Errorf("%w: %s is a folder; --config names a file, as in %s", ErrPlace, s.Path, filepath.Join(s.Path, "config.jsonc"))
	}
	if _, err := os.Lstat(s.Path); !s.Force && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s; --config names another file, and --force replaces this one", ErrExists, s.Path)
	}
	trial, err := os.CreateTemp(filepath.Dir(s.Path), ".ebb-*.jsonc")
	if err != nil {
		return fmt.Errorf("%w: %w; --config names a file in a folder that is there and writable", ErrPlace, err)
	}
	if err := errors.Join(trial.Close(), os.Remove(trial.Name())); err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
	return nil
}

func (s Setup) questions() []question {
	model := config.Default().LLM.Models[0]
	return []question{
		{name: "client_id", text: "Client ID of the application, from its credentials at https://open-dev.dingtalk.com", given: s.Given.ClientID, variable: "DINGTALK_CLIENT_ID", flag: "--client-id"},
		{name: "dingtalk_client_secret", text: "Client Secret of the application", given: s.Given.ClientSecretFile, variable: "DINGTALK_CLIENT_SECRET", secret: true, flag: "--client-secret-file"},
		{name: "base_url", text: "Address of the model's endpoint, of OpenAI's form", given: s.Given.BaseURL, preset: model.BaseURL.Reveal(), flag: "--base-url"},
		{name: "model", text: "Name of the model there", given: s.Given.Model, preset: model.Model, flag: "--model"},
		{name: "llm_api_key", text: "API key of the endpoint", given: s.Given.APIKeyFile, variable: "LLM_API_KEY", secret: true, flag: "--api-key-file"},
		{
			name: "database_url", text: "PostgreSQL, as postgres://user:password@host:5432/name; an empty line: a private server of this machine", given: s.Given.DatabaseURLFile,
			variable: "DATABASE_URL", secret: true, optional: true, flag: "--database-url-file",
		},
	}
}

func (q question) sources() string {
	if q.variable == "" {
		return q.flag
	}
	return fmt.Sprintf("%s, or %s in the environment", q.flag, q.variable)
}

// known returns a value that no person has to give: of a flag, of the environment, or a secret that an earlier run has written.
func (s Setup) known(q question) (value string, found bool, err error) {
	switch {
	case q.given != "" && q.secret:
		path, err := filepath.Abs(q.given)
		if err != nil {
			return "", false, fmt.Errorf("%s: %w", q.flag, err)
		}
		return "${file:" + path + "}", true, nil
	case q.given != "":
		return q.given, true, nil
	case q.variable != "" && s.Getenv(q.variable) != "":
		s.say("%s: from %s in the environment", q.name, q.variable)
		if q.optional {
			return "${" + q.variable + ":-}", true, nil
		}
		return "${" + q.variable + "}", true, nil
	case q.secret && !s.Force:
		path, err := s.secretPath(q.name)
		if err != nil {
			return "", false, err
		}
		if _, err := os.Lstat(path); err != nil {
			return "", false, nil //nolint:nilerr // a file that can't be read is none; writing says more
		}
		s.say("%s: from %s; --force asks for it", q.name, path)
		return "${file:" + path + "}", true, nil
	}
	return "", false, nil
}

func (s Setup) ask(ctx context.Context, q question) (string, error) {
	text := q.text
	switch {
	case q.preset != "":
		text += " [" + q.preset + "]"
	case q.secret:
		text += " (not shown)"
	}
	for range maxTries {
		answer, err := s.Ask.Ask(ctx, text+": ", q.secret)
		if err != nil {
			return "", err
		}
		if answer = strings.TrimSpace(answer); answer != "" || q.optional || q.preset != "" {
			if answer == "" {
				answer = q.preset
			}
			return answer, nil
		}
	}
	return "", fmt.Errorf("%s: no answer", q.name)
}

func (s Setup) secretPath(name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(filepath.Dir(s.Path), secretDir, name))
	if err != nil {
		return "", fmt.Errorf("finding the folder of secrets: %w", err)
	}
	return path, nil
}

func (s Setup) say(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }
