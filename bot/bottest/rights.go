package bottest

import (
	"context"
	"errors"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Rights is a memory of one fact, which may be seen, shared and forgotten.
type Rights struct {
	memory.Rights
	memory.Erasures
	Fact      memory.Known
	Forgotten int // deletions
	Half      int // a deletion fails behind the sessions before this one; 0: it succeeds
}

// MessagesBefore implements memory.Erasures.
func (c *Rights) MessagesBefore(context.Context, sessions.Key, sessions.UserID, int64, int) ([]sessions.Event, error) {
	return nil, nil
}

// KnownByID implements memory.Rights.
func (c *Rights) KnownByID(_ context.Context, _ memory.Asker, id int64) (memory.Known, error) {
	if id != c.Fact.ID {
		return memory.Known{}, sessions.ErrNotFound
	}
	return c.Fact, nil
}

// Known implements memory.Rights.
func (c *Rights) Known(_ context.Context, _ memory.Asker, skip, _ int) ([]memory.Known, int, error) {
	if skip > 0 {
		return nil, 0, nil
	}
	return []memory.Known{c.Fact}, 25, nil
}

// ForgetMemory implements memory.Erasures.
func (c *Rights) ForgetMemory(_ context.Context, _ int64, from memory.Asking) (memory.Forgotten, error) {
	if c.Half > 0 {
		return memory.Forgotten{Sessions: c.Half - 1, Lease: from.Lease}, errors.New("the storage is away")
	}
	c.Forgotten++
	return memory.Forgotten{Memories: 1, Messages: 2, Lease: from.Lease}, nil
}

// Promote implements memory.Rights.
func (c *Rights) Promote(context.Context, int64, sessions.UserID) (memory.Memory, error) {
	return memory.Memory{}, errors.New("must not be asked")
}

// People implements memory.Rights.
func (c *Rights) People(context.Context, sessions.RobotCode, sessions.Key, string) ([]memory.Person, error) {
	return nil, nil
}

// FactsOf implements memory.Export.
func (c *Rights) FactsOf(_ context.Context, _ sessions.RobotCode, _ sessions.UserID, after int64, _ int) ([]memory.Memory, error) {
	if after > 0 {
		return nil, nil
	}
	return []memory.Memory{c.Fact.Memory}, nil
}

// MessagesOf implements memory.Export.
func (c *Rights) MessagesOf(_ context.Context, _ sessions.RobotCode, _ sessions.UserID, after int64, _ int) ([]memory.PersonMessage, error) {
	var list []memory.PersonMessage
	for i, words := range []string{"早上好", "/记忆忘记3", "/存 备用钥匙在前台", "/home/li 里有什么"} {
		if id := int64(i + 1); id > after {
			list = append(list, memory.PersonMessage{Event: sessions.Event{ID: id, Content: words, CreatedAt: Lunch}, Private: i == 0, Title: "值班群"})
		}
	}
	if after < 5 {
		of := &sessions.Scheduled{DueAt: Lunch}
		e := sessions.Event{ID: 5, Content: of.Lead() + "/help", CreatedAt: Lunch, Message: &sessions.Message{Scheduled: of}}
		list = append(list, memory.PersonMessage{Event: e, Title: "值班群"})
	}
	return list, nil
}

// RecordsOf implements memory.Export.
func (c *Rights) RecordsOf(context.Context, sessions.RobotCode, sessions.UserID) ([]memory.Record, error) {
	return []memory.Record{
		{Kind: memory.RecordID, At: Lunch, Text: "$:LWCP", Rows: 1}, {Kind: memory.RecordUsage, At: Lunch, Text: "qwen", Rows: 2, Prompt: 900, Completion: 80},
		{Kind: memory.RecordSchedule, At: Lunch, Text: "交周报", Rows: 1, DueAt: Lunch.Add(time.Hour), Spec: "CRON_TZ=UTC 0 5 * * 5", Way: sessions.Remind},
	}, nil
}

// Lunch is the time of all facts and messages of Rights.
var Lunch = time.Date(2026, 11, 20, 4, 0, 0, 0, time.UTC)
