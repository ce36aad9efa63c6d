package main

import (
	"context"
	"errors"
	"fmt"

	"ebb/sessions"
	"ebb/sql"
)

// sureFlags are the flags of commands that nobody can take back.
type sureFlags struct {
	configFlag
	Yes bool `help:"Do it: it can't be taken back."`
}

// sure refuses where --yes was not said.
func (f sureFlags) sure(what string) error {
	if f.Yes {
		return nil
	}
	return usageError{fmt.Errorf("%s can't be taken back; say --yes to do it", what)}
}

// sessionsEraseCmd is bot sessions erase.
type sessionsEraseCmd struct {
	sureFlags
	Key string  `arg:"" help:"The session's key, as bot sessions list shows it."`
	Seq []int64 `arg:"" help:"The events' places, as bot sessions export shows them. Name the answers, calls and results that repeat a message too."`
}

// Run wipes events and what was made from them. Bots may go on serving: a turn that is under way begins again.
func (c sessionsEraseCmd) Run(ctx context.Context, app *App) error {
	if err := c.sure("what is erased"); err != nil {
		return err
	}
	return withStore(ctx, app, c.configFlag, func(s *sql.Store, _ clock) error {
		key := sessions.Key(c.Key)
		if _, err := s.Session(ctx, key); err != nil {
			return noSession(c.Key, err)
		}
		done, err := s.Erase(ctx, key, c.Seq)
		if errors.Is(err, sessions.ErrNotFound) {
			return usageError{fmt.Errorf("%w; nothing was erased, bot sessions export shows the events", err)}
		}
		if err != nil {
			return err
		}
		return writeRows(app.Stdout, [][2]string{
			{"events erased", fmt.Sprint(done.Events)},
			{"summaries wiped", fmt.Sprint(done.Summaries)},
			{"events to be told anew", fmt.Sprint(done.Reopened)},
			{"memories deleted", fmt.Sprint(done.Memories)},
			{"stored results deleted", fmt.Sprint(done.Blobs)},
			{"replies wiped", fmt.Sprint(done.Replies)},
		})
	})
}

// sessionsDeleteCmd is bot sessions delete.
type sessionsDeleteCmd struct {
	sureFlags
	Key string `arg:"" help:"The session's key, as bot sessions list shows it."`
}

// Run deletes a session. Bots may go on serving: a later message makes the session anew.
func (c sessionsDeleteCmd) Run(ctx context.Context, app *App) error {
	if err := c.sure("what is deleted"); err != nil {
		return err
	}
	return withStore(ctx, app, c.configFlag, func(s *sql.Store, _ clock) error {
		done, err := s.Delete(ctx, sessions.Key(c.Key))
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
