package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebb/bot/config"
	"ebb/bot/wording"
	"ebb/cmd/bot/gateway"
	"ebb/sql"
	"ebb/sql/citus"
)

// checkDatabase asks from the outside in: the way to the server, migrations, a newer schema, the places of a cluster. The first fault
// hides the others, as they follow from it.
func checkDatabase(ctx context.Context, cfg *config.Config) (word string, former []string, err error) {
	url, stop, err := database(ctx, cfg.Database)
	if err != nil {
		return "", nil, err
	}
	defer stop()
	where, err := checkLeads(ctx, cfg.Database, url)
	if err != nil {
		return "", nil, databaseFault(err)
	}
	pending := 0
	all, err := sql.Status(ctx, url)
	if err != nil {
		return "", nil, err
	}
	for _, m := range all {
		if !m.Applied {
			pending++
		}
	}
	if err := sql.CheckNewer(ctx, url); err != nil {
		return "", nil, err
	}
	if pending > 0 && !cfg.Database.Migrate {
		return "", nil, errors.New(wording.Count("%d migration{|s} pending and database.migrate is false: run bot migrate", pending))
	}
	how, err := sql.Distribution(ctx, url)
	if err == nil {
		err = findUndistributed(how)
	}
	if err != nil {
		return "", nil, err
	}
	if how.Distributed() {
		where += wording.Count(", %d table{|s} distributed", how.Count(citus.Distributed))
	}
	if pending == 0 {
		former, err = formerBots(ctx, cfg, url)
	}
	return where + wording.Count(", %d migration{|s} pending", pending), former, err
}

// formerBots has a line for each bot with data that the configuration does not have.
func formerBots(ctx context.Context, cfg *config.Config, url string) (lines []string, err error) {
	all, err := gateway.FormerRobots(ctx, cfg, url)
	for _, one := range all {
		name, left := one.Name, one.Left
		if name != string(one.Code) {
			name = fmt.Sprintf("%s (%s)", name, one.Code)
		}
		lines = append(lines, name+" is not configured, and was last started on "+one.StartedAt.Format(time.DateOnly)+": "+
			wording.Count("%d session{|s}, %d unanswered message{|s}, %d unsent repl{y|ies}, ", left.Sessions, left.Messages, left.Replies)+
			wording.Count("%d unfinished card{|s}, %d reminder{|s}, %d waiting approval{|s}", left.Cards, left.Schedules, left.Approvals)+
			" (next: put it back into dingtalk to go on, or delete its conversations by bot sessions delete)")
	}
	return lines, err
}

// direct is the server's own address.
func checkLeads(ctx context.Context, d config.DatabaseConfig, direct string) (string, error) {
	server, err := sql.Trace(ctx, direct)
	_, encoded := errors.AsType[sql.EncodingError](err)
	switch {
	case encoded:
		return "", err
	case err != nil && d.DirectURL != "":
		return "", withNextStep(fmt.Errorf("database.direct_url: %w", err), databaseStep("database.direct_url"))
	case err != nil && d.URL == "":
		return "", withNextStep(err, "read the log of the private PostgreSQL, "+d.Dir+".log")
	case err != nil:
		return "", withNextStep(err, databaseStep("database.url"))
	case d.URL == "":
		return fmt.Sprintf("private PostgreSQL %s in %s answers", server.Version, d.Dir), nil
	case d.DirectURL == "" && server.Between == sql.TransactionPooler:
		return "", fmt.Errorf("database.url leads through %s: set database.pooler to %q, and database.direct_url to the address of PostgreSQL itself",
			server.Between, config.PoolerTransaction)
	case d.DirectURL == "":
		return "database.url answers: " + way(server), nil
	case server.Between == sql.TransactionPooler:
		return "", errors.New("database.direct_url leads through a pooler, too: it must be the address of PostgreSQL itself")
	}
	through, err := sql.Trace(ctx, d.URL.Reveal())
	switch {
	case err != nil:
		return "", withNextStep(fmt.Errorf("database.url: %w", err), databaseStep("database.url"))
	case through.Identity != server.Identity:
		return "", errors.New("database.url and database.direct_url lead to different databases")
	case through.Between == sql.TransactionPooler && d.Pooler != config.PoolerTransaction:
		return "", fmt.Errorf("database.url leads through %s: set database.pooler to %q", through.Between, config.PoolerTransaction)
	}
	return "database.url and database.direct_url answer: " + way(through), nil
}

func way(l sql.Lead) string {
	if l.Between == sql.Nothing {
		return "PostgreSQL " + l.Version
	}
	return fmt.Sprintf("PostgreSQL %s behind %s", l.Version, l.Between)
}
