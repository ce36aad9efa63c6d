package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"ebb/bot/config"
	"ebb/bot/config/strict"
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
	staged := map[string]string{} // temporary files by their final path
	defer func() {
		for path, temporary := range staged {
			_ = os.Remove(temporary)          // it has another name by then, if all went well
			_ = os.Remove(filepath.Dir(path)) // nothing, unless the folder is empty
		}
	}()
	checked := maps.Clone(answers)
	for path, secret := range typed {
		if strings.ContainsAny(path, "}") {
			return fmt.Errorf("the folder of secrets has a brace in its path, which a configuration can't refer to: %s", filepath.Dir(path))
		}
		var err error
		if staged[path], err = stage(path, secret); err != nil {
			return fmt.Errorf("writing a secret: %w", err)
		}
		checked[filepath.Base(path)] = "${file:" + staged[path] + "}"
	}
	if err := s.writeConfig(checked, s.check); err != nil {
		return err
	}
	for path, temporary := range staged {
		if err := os.Rename(temporary, path); err != nil {
			return fmt.Errorf("writing a secret: %w", err)
		}
		s.say("%s: in %s", filepath.Base(path), path)
	}
	if err := s.writeConfig(answers, func(path string) error { return os.Rename(path, s.Path) }); err != nil {
		return fmt.Errorf("%w; %s is as it was, and secrets that were typed are new", err, s.Path)
	}
	s.say("configuration: in %s", s.Path)
	return nil
}

// writeConfig writes the answers to a temporary file, which use may give a name to.
func (s Setup) writeConfig(answers map[string]string, use func(path string) error) error {
	temporary, err := os.CreateTemp(filepath.Dir(s.Path), ".ebb-*.jsonc")
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.WriteString(render(answers, s.Given.APIBase))
	if err = errors.Join(err, temporary.Chmod(0o644), temporary.Close()); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return use(temporary.Name())
}

// check returns the faults without the place in a file that goes away.
func (s Setup) check(path string) error {
	_, err := config.Load(path, s.Getenv, config.NeedServe)
	faults, ok := errors.AsType[*strict.Error](err)
	if !ok {
		return err
	}
	for _, f := range faults.Fields {
		f.File, f.Line, f.Col = "", 0, 0
	}
	return faults
}

// stage writes a secret to a temporary file beside its own. Other users can read it at no moment.
func stage(path, secret string) (temporary string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // its mode is 0600
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(secret + "\n")
	return file.Name(), errors.Join(err, file.Close())
}
