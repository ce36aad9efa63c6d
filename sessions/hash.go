package sessions

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// HashEvents is the fingerprint of events: Seq, roles, contents and tool calls, in order. Other changes do not make a
// summary stale.
func HashEvents(events []Event) string {
	h := sha256.New()
	var length [8]byte
	field := func(text []byte) { // a length prefix separates fields
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write(text)
	}
	for _, e := range events {
		field(fmt.Append(nil, e.Seq))
		field([]byte(e.Role))
		field([]byte(e.Content))
		field(fmt.Append(nil, len(e.ToolCalls)))
		for _, c := range e.ToolCalls {
			field([]byte(c.ID))
			field([]byte(c.Name))
			field([]byte(c.Arguments))
		}
		field([]byte(e.ToolCallID))
		field([]byte(e.ToolName))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// AuditOffloads adds the number of deleted offloaded results and their first paths to a compaction's audit. audit is a
// JSON object or empty; other input is returned unchanged.
func AuditOffloads(audit string, deleted []string) string {
	fields := map[string]json.RawMessage{}
	if audit != "" {
		if err := json.Unmarshal([]byte(audit), &fields); err != nil || fields == nil {
			return audit
		}
	}
	paths := []string{}
	for _, blob := range slices.Sorted(slices.Values(deleted))[:min(len(deleted), maxDeletedPaths)] {
		paths = append(paths, BlobPath(blob))
	}
	list, _ := json.Marshal(paths) // strings never fail
	fields["offloads_deleted"], fields["deleted_files"] = json.RawMessage(fmt.Append(nil, len(deleted))), list
	b, err := json.Marshal(fields)
	if err != nil {
		return audit
	}
	return string(b)
}

const maxDeletedPaths = 100
