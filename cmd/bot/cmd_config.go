package main

import (
	"fmt"

	"github.com/alecthomas/kong"

	"ebb/bot/config"
)

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
