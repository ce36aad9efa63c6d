package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"ebb/bot/chat"
	"ebb/bot/config"
	"ebb/bot/config/strict"
	"ebb/bot/dingtalk"
	"ebb/bot/openai"
	"ebb/bot/wording"
	"ebb/cmd/bot/gateway"
	"ebb/sessions/llm"
)

type doctorCmd struct {
	configFlag
	Bot  string `placeholder:"NAME" help:"The bot of --card, by its name (default: the first)."`
	Card string `placeholder:"GROUP" help:"Try the card template with one card in this group, by its conversation id. Takes 4 of the month's API calls."`
}

const checkTimeout = 15 * time.Second

// Run checks the requirements of serve, one line each, and fails if a check fails.
func (c doctorCmd) Run(ctx context.Context, app *App) error {
	cfg, bad := c.load(app)
	var former []string
	for _, check := range []struct {
		name string
		run  func(context.Context, *config.Config) (string, error)
	}{
		{"database", func(ctx context.Context, cfg *config.Config) (word string, err error) {
			word, former, err = checkDatabase(ctx, cfg)
			return word, err
		}},
		{"model", checkModels},
		{"tools", checkTools},
		{"streaming", checkStreaming},
		{"embeddings", checkEmbeddings},
		{"mcp", gateway.CheckServers},
		{"dingtalk", checkDingTalk},
		{"stream", checkStream},
		{"clock", checkClock},
	} {
		if check.name == "embeddings" && (cfg == nil || cfg.Agent.Memory.Embeddings.BaseURL == "") {
			continue // no check applies
		}
		if check.name == "mcp" && (cfg == nil || len(cfg.Tools.MCP) == 0) {
			continue
		}
		if cfg == nil {
			fmt.Fprintf(app.Stdout, "skip %s: the config has to be right first\n", check.name)
			continue
		}
		bad = diagnose(ctx, app.Stdout, cfg, check.name, check.run) || bad
	}
	for _, line := range former {
		fmt.Fprintf(app.Stdout, "warn bots: %s\n", line)
	}
	if c.Card != "" && cfg == nil {
		fmt.Fprintln(app.Stdout, "skip card: the config has to be right first")
	} else if c.Card != "" {
		bad = tryCard(ctx, app.Stdout, cfg, c.Bot, c.Card) || bad
	}
	if bad {
		return errReported
	}
	return nil
}

// tryCard prints a line for each step. No other check takes calls of the month.
func tryCard(ctx context.Context, out io.Writer, cfg *config.Config, bot, group string) (bad bool) {
	step := func(name string, run func(context.Context) (string, error)) (ok bool) {
		return !diagnose(ctx, out, cfg, name, func(ctx context.Context, _ *config.Config) (string, error) { return run(ctx) })
	}
	d, err := cfg.DingTalk.Named(bot)
	if err != nil {
		return !step("card template", func(context.Context) (string, error) { return "", err })
	}
	url, stop, err := database(ctx, cfg.Database)
	if err != nil {
		return !step("card template", func(context.Context) (string, error) { return "", gateway.DatabaseFault(err) })
	}
	defer stop()
	trial, stopTrial, err := gateway.OpenTrial(ctx, cfg, d, url, group)
	defer stopTrial()
	if !step("card template", func(context.Context) (string, error) { return d.CardTemplateID, err }) || !step("card calls", trial.Reserve) {
		return true
	}
	good := step("card delivery", trial.Deliver) && step("card frame", trial.Frame) && step("card end", trial.End) &&
		step("card variables", trial.SetVariables)
	return !step("card calls", trial.Close) || !good
}

// load prints the config's faults. It returns an invalid config only if that lacks just credentials.
func (c doctorCmd) load(app *App) (cfg *config.Config, bad bool) {
	cfg, err := config.Load(c.Config, app.Getenv, config.NeedServe)
	if wrong, ok := errors.AsType[*strict.Error](err); ok {
		for _, f := range wrong.Fields {
			fmt.Fprintf(app.Stdout, "FAIL config: %v\n", f)
		}
		if cfg, err = config.Load(c.Config, app.Getenv, config.NeedNothing); err != nil {
			return nil, true
		}
		bad = true
	} else {
		fmt.Fprintf(app.Stdout, "ok   config: %s\n", c.Config)
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintf(app.Stdout, "warn config: %s\n", w)
	}
	return cfg, bad
}

func diagnose(ctx context.Context, out io.Writer, cfg *config.Config, name string, run func(context.Context, *config.Config) (string, error)) (bad bool) {
	ctx, stop := context.WithTimeout(ctx, checkTimeout)
	defer stop()
	word, err := run(ctx, cfg)
	if err != nil {
		fmt.Fprintf(out, "FAIL %s: %s\n", name, inOneLine(withWords(err.Error(), err)+stepOf(err)))
		return true
	}
	fmt.Fprintf(out, "ok   %s: %s\n", name, word)
	return false
}

// inOneLine parts the lines of a text, each a failure of its own, by semicolons. A line that announces the next one goes with it.
func inOneLine(text string) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		switch before := all.String(); {
		case line == "", before == "":
		case strings.HasSuffix(before, ":"):
			all.WriteString(" ")
		default:
			all.WriteString("; ")
		}
		all.WriteString(line)
	}
	return all.String()
}

// withWords adds the provider's own words. The requests of the checks have no words of people that it could repeat.
func withWords(text string, err error) string {
	if failed, ok := errors.AsType[*llm.CallError](err); ok && failed.Said != "" {
		return text + ": " + failed.Said
	}
	if failed, ok := errors.AsType[*chat.SendError](err); ok && failed.Said != "" {
		return text + ": " + failed.Said
	}
	return text
}

func checkModels(ctx context.Context, cfg *config.Config) (string, error) {
	return eachModel(ctx, cfg, "answered an ordinary request", func(ctx context.Context, c *openai.Client, name string) error { return c.CheckAnswer(ctx, name) })
}

// Memory depends on tool calls.
func checkTools(ctx context.Context, cfg *config.Config) (string, error) {
	return eachModel(ctx, cfg, "called a tool", func(ctx context.Context, c *openai.Client, name string) error {
		_, err := c.CheckTool(ctx, name)
		return err
	})
}

// The first token of a stream reveals a hanging model early.
func checkStreaming(ctx context.Context, cfg *config.Config) (string, error) {
	return eachModel(ctx, cfg, "streamed an answer", func(ctx context.Context, c *openai.Client, name string) error { return c.CheckStream(ctx, name) })
}

// eachModel checks all models at once: a dead endpoint takes its whole timeout. Each error has the next step and the keys of its
// model. Forms that an endpoint was found to refuse stand behind the line.
func eachModel(ctx context.Context, cfg *config.Config, did string, check func(context.Context, *openai.Client, string) error) (string, error) {
	client, err := gateway.OpenModel(cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	errs, learned := make([]error, len(cfg.LLM.Models)), make([]string, len(cfg.LLM.Models))
	var all sync.WaitGroup
	for i, m := range cfg.LLM.Models {
		all.Go(func() {
			if err := check(ctx, client, m.Name); err != nil { // with the provider's name of the model, since the error has Ebb's
				path := fmt.Sprintf("llm.models[%d].", i)
				errs[i] = fmt.Errorf("%s (%s): %s (next: %s)", m.Name, m.Model, withWords(strings.TrimPrefix(err.Error(), "model "+m.Name+": "), err),
					modelStep(err, path, path+"params and "+path+"max_output", "agent.compaction.context_window"))
			}
			if forms := client.Learned(m.Name); len(forms) > 0 {
				learned[i] = "; " + m.Name + " " + strings.Join(forms, ", ")
			}
		})
	}
	all.Wait()
	good := len(errs)
	for _, err := range errs {
		if err != nil {
			good--
		}
	}
	return fmt.Sprintf("%d of %d %s", good, len(errs), did) + strings.Join(learned, ""), errors.Join(errs...)
}

func checkEmbeddings(ctx context.Context, cfg *config.Config) (string, error) {
	word, err := gateway.CheckEmbeddings(ctx, cfg)
	const path = "agent.memory.embeddings."
	return word, withNextStep(err, modelStep(err, path, path+"dimensions", path+"model"))
}

func checkDingTalk(ctx context.Context, cfg *config.Config) (string, error) {
	return eachBot(cfg, "credentials are accepted", func(t *dingtalk.Transport) error { return t.CheckCredentials(ctx) })
}

// The stream gateway refuses apps outside stream mode.
func checkStream(ctx context.Context, cfg *config.Config) (string, error) {
	return eachBot(cfg, "the gateway offers a connection", func(t *dingtalk.Transport) error { return t.CheckStream(ctx) })
}

// eachBot checks all bots, and names those that fail with their keys. Several are checked at once: a server that is silent takes the whole
// timeout.
func eachBot(cfg *config.Config, did string, check func(*dingtalk.Transport) error) (string, error) {
	several, errs := len(cfg.DingTalk) > 1, make([]error, len(cfg.DingTalk))
	var all sync.WaitGroup
	for i, d := range cfg.DingTalk {
		all.Go(func() {
			path := "dingtalk"
			if several {
				path = fmt.Sprintf("dingtalk[%d]", i)
			}
			if d.ClientID == "" || d.ClientSecret == "" {
				errs[i] = withNextStep(fmt.Errorf("not asked, because %s.client_id or %s.client_secret is empty", path, path),
					"make an application with a bot in the DingTalk developer console, and set its Client ID and Client Secret")
			} else if t, err := dingtalk.New(dingtalk.Config{ClientID: d.ClientID, ClientSecret: d.ClientSecret.Reveal(), APIBase: d.APIBase, OAPIBase: d.OAPIBase}); err != nil {
				errs[i] = err
			} else if err := check(t); err != nil {
				errs[i] = withNextStep(err, dingtalkStep(err, path))
			}
			if several && errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %s%s", d.Name, withWords(errs[i].Error(), errs[i]), stepOf(errs[i]))
			}
		})
	}
	all.Wait()
	if !several {
		return did, errs[0]
	}
	return wording.Count("%d bot{|s}: %s", len(errs), did), errors.Join(errs...)
}

// Leases use the database's clock, but webhooks expire by ours.
const maxSkew = 30 * time.Second

func checkClock(ctx context.Context, cfg *config.Config) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, cfg.DingTalk[0].APIBase, nil)
	if err != nil {
		return "", fmt.Errorf("dingtalk.api_base: %w", err)
	}
	before := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", withNextStep(fmt.Errorf("ask DingTalk for the time: %w", err), clockStep(err))
	}
	defer resp.Body.Close()
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return "", withNextStep(fmt.Errorf("DingTalk's answer has no date: %w", err), clockStep(err))
	}
	skew := time.Since(before)/2 + before.Sub(theirs)
	if skew.Abs() > maxSkew {
		return "", withNextStep(fmt.Errorf("this machine's clock is %s off", skew.Round(time.Second)), skewStep())
	}
	return "within " + maxSkew.String() + " of DingTalk's", nil
}

// adviceError is a failed check with the next step of an administrator.
type adviceError struct {
	error

	next string
}

// Unwrap returns the failure.
func (e adviceError) Unwrap() error { return e.error }

// withNextStep adds no step where next is empty.
func withNextStep(err error, next string) error {
	if err == nil || next == "" {
		return err
	}
	return adviceError{err, next}
}

// stepOf is the step of a failed check, as the end of its line; empty for none. Other errors say themselves what to do.
func stepOf(err error) string {
	if a, ok := errors.AsType[adviceError](err); ok {
		return " (next: " + a.next + ")"
	}
	return ""
}

// modelStep says what to do about the failure of a model, whose configuration is at path. form and size are the keys of what a request asks
// for, and of its largest size.
func modelStep(err error, path, form, size string) string {
	switch llm.ClassOf(err) {
	case llm.Denied:
		return "check " + path + "api_key, and the rights of the account"
	case llm.Unpaid:
		return "pay the provider's account, or raise its limit"
	case llm.Missing:
		return "check " + path + "base_url and " + path + "model"
	case llm.Unreachable:
		return "check " + path + "base_url and the network"
	case llm.Malformed:
		return "check " + form + ", or use another model"
	case llm.Overflow:
		return "check " + size
	case llm.Refused:
		return "use another model: this one refuses a request without a word of people"
	}
	return "try again in a while, and ask the provider if it stays so"
}

// databaseFault is gateway.DatabaseFault with the step.
func databaseFault(err error) error {
	fault := gateway.DatabaseFault(err)
	if a, ok := errors.AsType[adviceError](err); ok {
		return withNextStep(fault, a.next)
	}
	return fault
}

func databaseStep(key string) string {
	return "check " + key + ", and that PostgreSQL runs there and admits this user from this machine"
}

const networkStep = "check dingtalk.api_base and the network"

// dingtalkStep says what to do about a refusal or the silence of DingTalk. path is that of the bot in the configuration.
func dingtalkStep(err error, path string) string {
	switch _, unanswered := errors.AsType[net.Error](err); {
	case unanswered:
		return "check " + path + ".api_base and the network"
	case errors.Is(err, dingtalk.ErrCredentials):
		return "copy " + path + ".client_id and " + path + ".client_secret from the application in the DingTalk developer console"
	case errors.Is(err, dingtalk.ErrStream):
		return "set the message mode of the bot to Stream in the DingTalk developer console, and publish the application"
	}
	return "try again in a while; DingTalk answers, but not as it should"
}

func clockStep(err error) string {
	if _, unanswered := errors.AsType[net.Error](err); unanswered {
		return networkStep
	}
	return "check dingtalk.api_base: a server of DingTalk has a date in its answers"
}

func skewStep() string {
	return fmt.Sprintf("set the clock of this machine, such as by NTP: it may be %s off", maxSkew)
}
