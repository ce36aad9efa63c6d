package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ebb/bot/config"
	"ebb/bot/manage"
	"ebb/cmd/bot/gateway"
	"ebb/sessions"
	"ebb/sql"
)

type sureFlags struct {
	configFlag
	Yes bool `help:"Do it: it can't be taken back."`
}

func (f sureFlags) requireYes(what string) error {
	if f.Yes {
		return nil
	}
	return usageError{fmt.Errorf("%s can't be taken back; say --yes to do it", what)}
}

// withWaits lets an erasure log to stderr that it waits for a turn or upkeep.
func withWaits(ctx context.Context, app *App) context.Context {
	log, _ := gateway.NewLogger(config.LogConfig{Level: "info", Format: "auto"}, app.Stderr)
	return log.WithContext(ctx)
}

type sessionsEraseCmd struct {
	sureFlags
	Key string   `arg:"" help:"The session's key, as bot sessions list shows it."`
	Seq []string `arg:"" help:"The events' places, as bot sessions export shows them, or id:N for a message without one: a dead letter, say. Name the answers, calls and results that repeat a message too."`
}

// Run erases events and their derived data. Bots may serve: a running turn starts again.
func (c sessionsEraseCmd) Run(ctx context.Context, app *App) error {
	if err := c.requireYes("an erasure of messages"); err != nil {
		return err
	}
	seqs, ids, err := c.events()
	if err != nil {
		return usageError{err}
	}
	return withManager(ctx, app, c.configFlag, func(m *manage.Manager, s *sql.Store, _ clock) error {
		key := sessions.Key(c.Key)
		if _, err := s.Sessions.Session(ctx, key); err != nil {
			return noSession(c.Key, err)
		}
		done, err := m.EraseEvents(withWaits(ctx, app), operator, key, seqs, ids)
		if errors.Is(err, sessions.ErrNotFound) {
			return usageError{fmt.Errorf("session %s: %w; nothing was erased, bot sessions export shows the events", key, err)}
		}
		if err != nil {
			return ofSession(c.Key, err)
		}
		return writeRows(app.Stdout, [][2]string{
			{"events erased", fmt.Sprint(done.Events)},
			{"summaries healed", fmt.Sprint(done.Healed)},
			{"summaries to be rewritten", fmt.Sprint(done.Summaries)},
			{"memories deleted", fmt.Sprint(done.Memories)},
			{"stored results deleted", fmt.Sprint(done.Blobs)},
			{"replies wiped", fmt.Sprint(done.Replies)},
		})
	})
}

// events parses places such as 17, and ids such as id:123.
func (c sessionsEraseCmd) events() (seqs, ids []int64, err error) {
	for _, word := range c.Seq {
		number, byID := strings.CutPrefix(word, "id:")
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil || n < 1:
			return nil, nil, fmt.Errorf("%q names no event: want its place, such as 17, or its id, such as id:123", word)
		case byID:
			ids = append(ids, n)
		default:
			seqs = append(seqs, n)
		}
	}
	return seqs, ids, nil
}

type sessionsDeleteCmd struct {
	sureFlags
	Key string `arg:"" help:"The session's key, as bot sessions list shows it."`
}

// Run deletes a session while bots may serve: a later message creates it again.
func (c sessionsDeleteCmd) Run(ctx context.Context, app *App) error {
	if err := c.requireYes("an erasure of a person"); err != nil {
		return err
	}
	return withManager(ctx, app, c.configFlag, func(m *manage.Manager, _ *sql.Store, _ clock) error {
		done, err := m.DeleteSession(ctx, operator, sessions.Key(c.Key))
		if err != nil {
			return noSession(c.Key, err)
		}
		return writeRows(app.Stdout, [][2]string{
			{"events deleted", fmt.Sprint(done.Events)},
			{"summaries deleted", fmt.Sprint(done.Summaries)},
			{"log rows deleted", fmt.Sprint(done.Compactions)},
			{"memories deleted", fmt.Sprint(done.Memories)},
			{"stored results deleted", fmt.Sprint(done.Blobs)},
			{"replies deleted", fmt.Sprint(done.Replies)},
		})
	})
}
