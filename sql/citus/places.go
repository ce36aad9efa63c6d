package citus

import (
	"fmt"
	"slices"
)

// Kind says on which nodes the rows of a table are.
type Kind string

// The kinds of tables.
const (
	Local       Kind = "local"       // on the coordinator alone
	Reference   Kind = "reference"   // a copy on each node
	Distributed Kind = "distributed" // in shards, by the hash of a column
)

// Place is where the rows of a table belong.
type Place struct {
	Table string
	Kind  Kind
	Key   string // column that distributes the rows; empty for other kinds
}

// first is distributed before all others, which join its colocation group.
const first = "dingtalk_sessions"

// keys are the tables without a session_key that are distributed.
var keys = map[string]string{
	"embeddings": "scope_key", // the session's key for its events
}

// references are small tables that statements join with distributed ones. Each write of them needs all nodes.
var references = []string{"memories", "deleted_messages", "sender_ids", "group_scopes"}

// locals are tables that no statement of a message joins with distributed ones, and replicas: its heartbeats would stop with any node.
var locals = []string{
	"api_calls", "api_days", "api_months", "console_login_states", "console_logins", "goose_db_version", "limit_keys", "limit_windows", "person_erasures",
	"replicas", "restarts", "robots",
}

// PlaceOf fails for a table that it does not know.
func PlaceOf(table string, ofSession bool) (Place, error) {
	switch key := keys[table]; {
	case ofSession:
		return Place{table, Distributed, "session_key"}, nil
	case key != "":
		return Place{table, Distributed, key}, nil
	case slices.Contains(references, table):
		return Place{table, Reference, ""}, nil
	case slices.Contains(locals, table):
		return Place{table, Local, ""}, nil
	}
	return Place{}, fmt.Errorf("the table %s has no place in a cluster", table)
}
