package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/rows"
	"ebb/sessions"
	"ebb/sql/compactions"
	"ebb/sql/facts"
)

func viewReceipts(receipts []facts.FlushReceipt) []rows.Receipt {
	var out []rows.Receipt
	for _, r := range receipts {
		out = append(out, rows.Receipt{
			StartSeq: r.From + 1, EndSeq: r.Through, Trigger: r.Trigger,
			Saved: r.Receipt.Saved, Known: r.Receipt.Duplicate, Superseded: r.Receipt.Superseded,
		})
	}
	return out
}

// receiptLine lists the memories that one flush saved.
func receiptLine(r rows.Receipt) string {
	var out strings.Builder
	if r.EndSeq < r.StartSeq {
		fmt.Fprintf(&out, "%s, read again up to event %d:", r.Trigger, r.EndSeq) // a call with the maximum of facts
	} else {
		fmt.Fprintf(&out, "%s, events %d to %d:", r.Trigger, r.StartSeq, r.EndSeq)
	}
	for _, part := range []struct {
		word string
		ids  []int64
	}{{"saved", r.Saved}, {"known before", r.Known}, {"corrected", r.Superseded}} {
		if len(part.ids) > 0 {
			out.WriteString(" " + part.word)
		}
		for _, id := range part.ids {
			fmt.Fprintf(&out, " #%d", id)
		}
	}
	if len(r.Saved)+len(r.Known) == 0 {
		out.WriteString(" nothing to save")
	}
	return out.String()
}

func viewCompaction(e sessions.LogEntry, end compactions.End) rows.Compaction {
	v := rows.OfCompaction(e)
	if v.SummaryID = end.SummaryID; end.Erased {
		v.UndoneAt, v.ErasedAt = time.Time{}, v.UndoneAt
	}
	return v
}

// auditWords are in reading order.
var auditWords = []struct{ key, says string }{
	{"source_tokens", "summarized, tokens in full"},
	{"summary_tokens", "summary, tokens"},
	{"calls", "model calls"},
	{"fallback", "fallback model"},
	{"recall", "identifiers kept"},
	{"precision", "identifiers of the source"},
	{"added", "identifiers added"},
	{"missing", "added verbatim"},
	{"invented", "marked as unverified"},
	{"repaired", "written again"},
	{"healed", "mended without a model"},
	{"rolled_up", "older summaries joined"},
	{"roll_up_failed", "not joined"},
	{"unavailable", "results not readable"},
	{"offloads_deleted", "offloads deleted"},
	{"deleted_files", "deleted files"},
	{"preserved_count", "events preserved"},
	{"pinned_growth", "newly pinned, tokens"},
	{"memories", "saved to memory"},
}

// auditRows puts described figures first.
func auditRows(audit string) [][2]string {
	if strings.TrimSpace(audit) == "" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(audit))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return [][2]string{{"audit", audit}}
	}
	var rows [][2]string
	add := func(key, says string) {
		if text := auditText(key, fields[key]); text != "" {
			rows = append(rows, [2]string{says, text})
		}
		delete(fields, key)
	}
	for _, w := range auditWords {
		add(w.key, w.says)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		add(key, strings.ReplaceAll(key, "_", " "))
	}
	return rows
}

// auditText is empty for a value without information.
func auditText(key string, value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "yes"
		}
		return ""
	case json.Number:
		if share, err := v.Float64(); err == nil && (key == "recall" || key == "precision") {
			return strconv.FormatFloat(math.Round(1000*share)/10, 'f', -1, 64) + " %"
		}
		return v.String()
	case string:
		return v
	case []any:
		texts := make([]string, 0, len(v))
		for _, x := range v {
			texts = append(texts, auditText("", x))
		}
		return strings.Join(texts, ", ")
	default:
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(v); err != nil {
			return fmt.Sprint(v)
		}
		return strings.TrimSpace(b.String())
	}
}

// memorySaid is the time of the source, or of the memory where that is unknown.
func memorySaid(m rows.Memory) time.Time {
	if m.SaidAt.IsZero() {
		return m.CreatedAt
	}
	return m.SaidAt
}

func memoryState(m rows.Memory, now time.Time) string {
	switch {
	case m.SupersededBy != 0:
		return fmt.Sprintf("superseded by %d", m.SupersededBy)
	case !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(now):
		return "expired"
	}
	return "in force"
}
