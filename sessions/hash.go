package sessions

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// HashEvents is the fingerprint of what events say, in their order: their places, roles, contents and tool calls. It
// covers nothing else, so that what is remembered, shown or instructed meanwhile doesn't make a summary of them stale.
func HashEvents(events []Event) string {
	h := sha256.New()
	var length [8]byte
	field := func(text []byte) { // each with its length before it: no two lists of fields run together
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

// AuditOffloads is a compaction's audit, a JSON object or nothing, with the moved-out results that it deleted: their number
// and the paths of the first of them. Anything else is returned as it is.
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
	list, _ := json.Marshal(paths) // of strings
	fields["offloads_deleted"], fields["deleted_files"] = json.RawMessage(fmt.Append(nil, len(deleted))), list
	b, err := json.Marshal(fields)
	if err != nil {
		return audit
	}
	return string(b)
}

// maxDeletedPaths bounds the paths that an audit lists.
const maxDeletedPaths = 100
