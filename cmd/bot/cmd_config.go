package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"ebb/bot/config"
	"ebb/cmd/bot/setup"
)

// initCmd writes a first configuration. Secrets have no flags of their own: other users of a machine see its command lines.
type initCmd struct {
	configFlag
	ClientID         string `placeholder:"ID" help:"Client ID of the DingTalk application."`
	ClientSecretFile string `placeholder:"FILE" help:"A file with its Client Secret."`
	APIBase          string `name:"api-base" placeholder:"URL" help:"Another server of DingTalk's API."`
	BaseURL          string `name:"base-url" placeholder:"URL" help:"Endpoint of the model."`
	Model            string `placeholder:"NAME" help:"Name of the model there."`
	APIKeyFile       string `name:"api-key-file" placeholder:"FILE" help:"A file with the key of the endpoint."`
	DatabaseURLFile  string `name:"database-url-file" placeholder:"FILE" help:"A file with the address of PostgreSQL."`
	Force            bool   `help:"Replace a configuration, and secrets that an earlier run wrote."`
}

// Run asks for what flags and environment do not have, writes, and ends with the checks of doctor.
func (c initCmd) Run(ctx context.Context, app *App) error {
	err := c.write(ctx, app)
	missing, hasNoPlace := setup.MissingError{}, errors.Is(err, setup.ErrExists) || errors.Is(err, setup.ErrPlace)
	switch {
	case hasNoPlace || errors.As(err, &missing):
		return usageError{err}
	case err != nil:
		return err
	}
	return doctorCmd{configFlag: c.configFlag}.Run(ctx, app)
}

func (c initCmd) write(ctx context.Context, app *App) error {
	s := setup.Setup{Path: c.Config, Force: c.Force, Getenv: app.Getenv, Out: app.Stdout, Ask: setup.NoTerminal{}, Given: setup.Given{
		ClientID: c.ClientID, ClientSecretFile: c.ClientSecretFile, BaseURL: c.BaseURL, Model: c.Model, APIKeyFile: c.APIKeyFile,
		DatabaseURLFile: c.DatabaseURLFile, APIBase: c.APIBase,
	}}
	if in, isFile := app.Stdin.(*os.File); isFile {
		terminal, err := setup.Open(in, app.Stdout)
		if err != nil {
			return err
		}
		if terminal != nil {
			defer func() { _ = terminal.Close() }() // the terminal is gone if it fails
			s.Ask, s.Out = terminal, terminal
		}
	}
	return s.Run(ctx)
}

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"List everything that is wrong in a config file, as file:line:col."`
	Print configPrintCmd `cmd:"" help:"Print the effective config as JSON, with secrets as ***."`
}

type configFile struct {
	configFlag
	File string `arg:"" optional:"" help:"The config file, in place of --config."`
}

// AfterApply copies the positional argument to the flag. Kong calls it.
func (f *configFile) AfterApply(parsed *kong.Context) error {
	if f.File == "" {
		return nil
	}
	for _, p := range parsed.Path {
		if p.Flag != nil && p.Flag.Name == "config" && f.Config != f.File {
			return fmt.Errorf("two config files are named, %s and --config=%s: which one?", f.File, f.Config)
		}
	}
	f.Config = f.File
	return nil
}

type configCheckCmd struct {
	configFile
}

// Run checks a config like serve.
func (c configCheckCmd) Run(app *App) error {
	cfg, err := config.Load(c.Config, app.Getenv, config.NeedServe)
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintf(app.Stdout, "warning: %s\n", w)
	}
	fmt.Fprintf(app.Stdout, "%s: ok\n", c.Config)
	return nil
}

type configPrintCmd struct {
	configFile
}

// Run needs no credentials: it works on any machine.
func (c configPrintCmd) Run(app *App) error {
	cfg, err := config.Load(c.Config, app.Getenv, config.NeedNothing)
	if err != nil {
		return err
	}
	out, err := cfg.JSON()
	if err != nil {
		return err
	}
	_, err = app.Stdout.Write(out)
	return err
}
