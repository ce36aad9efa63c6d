package main

import (
	"os"
	"strings"
	"testing"

	"ebb/bot/command"
)

func TestConfigurationPageIsCurrent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../config.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	want, err := render(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md is not made from this config.jsonc: run make generate")
	}
}

func TestCommandsPageIsCurrent(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != renderCommands(command.Commands) {
		t.Error("docs/commands.md is not made from this table of commands: run make generate")
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	const text = `// The file.
//
//   ${NAME}   a variable
//
// More of it.
{
  // About a and b.
  "a": {
    "url": "https://x", // with // in it
    "n": 1,

    // Lists.
    "groups": {},
    "models": [
      {
        "name": "main",
      },
    ],
    "last": [],
  },

  // Apart.
  "single": {},
}
`
	const want = head + `
The file.

* ` + "`${NAME}`" + `: a variable

More of it.

## ` + "`a`" + `

About a and b.

* ` + "`a.url`: `\"https://x\"`" + ` · with // in it
* ` + "`a.n`: `1`" + `

Lists.

* ` + "`a.groups`: `{}`" + `

## ` + "`a.models[]`" + `

* ` + "`a.models[].name`: `\"main\"`" + `

## ` + "`a`" + `

* ` + "`a.last`: `[]`" + `

## ` + "`single`" + `

Apart.

* ` + "`single`: `{}`" + `
`
	got, err := render(text)
	if err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	for _, bad := range []string{"{\n  a: 1,\n}", "}\n"} {
		if _, err := render(bad); err == nil || !strings.Contains(err.Error(), "config.jsonc:") {
			t.Errorf("render(%q): got %v, want an error with a line", bad, err)
		}
	}
}
