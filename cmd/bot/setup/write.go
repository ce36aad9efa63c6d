package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ebb/bot/config"
)

// form is the configuration. Its values are strings of JSON.
const form = `// Ebb's configuration. docs/configuration.md has all keys with their defaults, and bot config check finds mistakes.
{
  // The application in the DingTalk developer console. The message mode of its bot is Stream.
  "dingtalk": { "client_id": %s, "client_secret": %s%s },
  // An endpoint of OpenAI's form. Further models of the list stand in for the first.
  "llm": { "models": [{ "name": "main", "base_url": %s, "model": %s, "api_key": %s }] },
  // Empty: a private PostgreSQL of this machine, in data/postgres.
  "database": { "url": %s },
}
`

func render(answers map[string]string, apiBase string) string {
	other := ""
	if apiBase != "" {
		other = `, "api_base": ` + quoted(apiBase)
	}
	return fmt.Sprintf(form, quoted(answers["client_id"]), quoted(answers["dingtalk_client_secret"]), other,
		quoted(answers["base_url"]), quoted(answers["model"]), quoted(answers["llm_api_key"]), quoted(answers["database_url"]))
}

// quoted leaves & and < as they are: addresses have them.
func quoted(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string has no error
	return strings.TrimSpace(b.String())
}

// write stores the secrets, checks the configuration, and gives it its name last: a killed process leaves no half of it.
func (s Setup) write(answers, typed map[string]string) error {
	for path, secret := range typed {
		if strings.ContainsAny(path, "}") {
			return fmt.Errorf("the folder of secrets has a brace in its path, which a configuration can't refer to: %s", filepath.Dir(path))
		}
		if err := writeSecret(path, secret); err != nil {
			return fmt.Errorf("writing a secret: %w", err)
		}
		s.say("%s: in %s", filepath.Base(path), path)
	}
	temporary, err := os.CreateTemp(filepath.Dir(s.Path), ".ebb-*.jsonc")
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // it has another name by then, if all went well
	_, err = temporary.WriteString(render(answers, s.Given.APIBase))
	if err = errors.Join(err, temporary.Chmod(0o644), temporary.Close()); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	if err := s.check(temporary.Name()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), s.Path); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	s.say("configuration: in %s", s.Path)
	return nil
}

// check returns the faults without the place in a file that goes away.
func (s Setup) check(path string) error {
	_, err := config.Load(path, s.Getenv, config.NeedServe)
	faults, ok := errors.AsType[*config.Error](err)
	if !ok {
		return err
	}
	for _, f := range faults.Fields {
		f.File, f.Line, f.Col = "", 0, 0
	}
	return faults
}

// writeSecret replaces a file as a whole. Other users can read it at no moment.
func writeSecret(path, secret string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.WriteString(secret + "\n")
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
