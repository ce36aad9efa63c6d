package command

import (
	"context"
	"strings"

	"ebb/bot/manage"
	"ebb/bot/parts"
	"ebb/bot/upkeep"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/serial"
)

// Table is all commands. The parser, help, usage, suggestions and rights come from it.
type Table []Command

// Command is one command with its uses. Names and words are in lower case; help shows the first of each language.
type Command struct {
	ZH, EN []string
	Bare   bool // the first name of each language is recognized without a slash
	Uses   []Use
}

// Use is one way to use a command: with one of its words behind the name, or with an argument alone.
type Use struct {
	ZH, EN []string              // words; none: an argument alone
	Alone  []string              // further names for the command with the word
	Args   Args                  // behind the word
	Match  func(arg string) bool // for a use without words; nil: any argument
	// Glue lists the characters and After the words that may follow without a blank. A Chinese word that takes an
	// argument and has neither takes any text.
	Glue  string
	After []string
	Keeps bool // the argument stays stored as the member's words
	// Text is set where the argument is free text, and Person where it is a person: mentions at its end belong to it.
	Text, Person bool
	// Denied answers a sender without the right; nil: with [wording.NotAdmin].
	Denied func(arg string) wording.Phrase

	Who   Right
	Work  sessions.Work // its kind for limits; empty: it costs nothing to speak of
	Usage wording.Text
	Does  wording.Text
	// Example is what a person may write, for a use with an argument.
	Example wording.Text
	Run     run
}

// Call is a parsed command. Command is nil for an unknown name, and Use if the command has no such use.
type Call struct {
	Command *Command
	Use     *Use
	Name    string // in English; of an unknown command as written
	Rest    string // behind the name
	Arg     string // behind the words of the use
}

// env is all that commands are made of. Each takes the few parts that it needs.
type env struct {
	shared *parts.Shared
	views  *view.Builder
	stores Stores
	worker *upkeep.Worker
	scope  func(sessions.ConversationID) sessions.Scope // configured scope of a group
	opts   Options
	table  Table
	manage *manage.Manager

	upkeep *serial.Mailboxes
	stats  Stats
}

// run executes a use of a command and returns the answer.
type run func(*env, context.Context, *view.CommandTurn, Call) string

// on makes a command of its parts, and executes it.
func on[C any](of func(*env) C, do func(C, context.Context, *view.CommandTurn, Call) string) run {
	return func(e *env, ctx context.Context, t *view.CommandTurn, c Call) string { return do(of(e), ctx, t, c) }
}

// Args is the argument that a use takes. The usage answers any other one.
type Args int

// The arguments of uses.
const (
	NoArgs Args = iota
	Optional
	Required
	Number // number of a memory
)

// Right is a right that a use requires.
type Right int

// The rights. A group belongs to its administrators, a private chat to its person.
const (
	Anyone       Right = iota
	Owner              // owner of the conversation
	Admin              // administrator of the group, or of the installation
	Installation       // administrator of the installation: the use affects other conversations
)

const digits = "#＃0123456789０１２３４５６７８９"

// denied is the answer to a sender without the right. A use that an administrator of the group lacks is for those of the installation.
func (u *Use) denied(arg string, admin bool) wording.Phrase {
	switch {
	case admin:
		return wording.NotInstallation
	case u.Denied == nil:
		return wording.NotAdmin
	}
	return u.Denied(arg)
}

func (c *Command) usage(lang string) string {
	parts := make([]string, len(c.Uses))
	for i, u := range c.Uses {
		parts[i] = "`" + u.Usage.In(lang) + "`"
		if u.Who >= Admin {
			parts[i] += wording.Say(wording.UsageAdmins, lang)
		}
	}
	return wording.Say(wording.Usage, lang, strings.Join(parts, wording.Say(wording.Comma, lang)))
}
