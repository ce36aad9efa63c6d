package manage

import (
	"context"
	"errors"
	"testing"

	"ebb/memory"
	"ebb/sessions"
)

// nothing reads an export and does nothing with it.
var nothing = Reader{ignore[memory.Memory], ignore[memory.PersonMessage], ignore[memory.Record]}

func (s *storage) RecordsOf(_ context.Context, _ sessions.RobotCode, who sessions.UserID) ([]memory.Record, error) {
	if who != "bob" && who != "used" {
		return nil, nil
	}
	return []memory.Record{{Kind: memory.RecordUsage, Rows: 1}, {Kind: memory.RecordID, Rows: 1}}, nil
}

// An export has each row once, across batches, and ends with the first error of the receiver.
func TestExportReadsEachRowOnce(t *testing.T) {
	t.Parallel()
	m, seen := newTestManager(&storage{}), map[int64]int{}
	facts, records := 0, 0
	to := Reader{
		Fact:    func(memory.Memory) error { facts++; return nil },
		Message: func(p memory.PersonMessage) error { seen[p.Event.ID]++; return nil },
		Record:  func(memory.Record) error { records++; return nil },
	}
	err := m.Export(t.Context(), operator, "bob", to)
	if err != nil || facts != 1 || len(seen) != exportBatch+3 || records != 2 {
		t.Errorf("error %v, %d facts, %d messages and %d records, want 1, %d and 2", err, facts, len(seen), records, exportBatch+3)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("message %d is read %d times", id, n)
		}
	}
	full := errors.New("the disk is full")
	for name, fail := range map[string]func(*Reader){
		"fact":    func(r *Reader) { r.Fact = func(memory.Memory) error { return full } },
		"message": func(r *Reader) { r.Message = func(memory.PersonMessage) error { return full } },
		"record":  func(r *Reader) { r.Record = func(memory.Record) error { return full } },
	} {
		broken := to
		fail(&broken)
		if err := m.Export(t.Context(), operator, "bob", broken); !errors.Is(err, full) {
			t.Errorf("%s: error %v, want %v", name, err, full)
		}
	}
}
