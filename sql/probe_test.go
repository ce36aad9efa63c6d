package sql_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func TestTrace(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	direct, err := sql.Trace(t.Context(), address)
	if err != nil || direct.Between != sql.Nothing || direct.Version == "" {
		t.Fatalf("the server itself is %+v (%v)", direct, err)
	}
	through, err := sql.Trace(t.Context(), sqltest.Pooler(t, address).Through(address))
	if err != nil || through.Between != sql.TransactionPooler || through.Identity != direct.Identity {
		t.Errorf("through a pooler it is %+v (%v), want the same database as %+v", through, err, direct)
	}
	other, err := sql.Trace(t.Context(), sqltest.URL(t))
	if err != nil || other.Identity == direct.Identity {
		t.Errorf("another database is %+v (%v), the same as %+v", other, err, direct)
	}
	if _, err := sql.Trace(t.Context(), storetest.MissingDatabase(t, address)); err == nil {
		t.Error("a database that is not there answers")
	}
}

func TestOtherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"SQL_ASCII", "LATIN1", "EUC_CN"} {
		address := sqltest.Encoded(t, encoding)
		_, traced := sql.Trace(t.Context(), address)
		_, created := sql.Migrate(t.Context(), address)
		for _, err := range []error{traced, created} {
			if e, ok := errors.AsType[sql.EncodingError](err); !ok || string(e) != encoding {
				t.Errorf("%s: gave %v", encoding, err)
			}
		}
		if all, err := sql.Status(t.Context(), address); err != nil || all[0].Applied {
			t.Errorf("%s: the database has the schema (%v)", encoding, err)
		}
	}
}

// A database made for another program may have settings of its own.
func TestSettingsOfTheDatabaseChangeNoText(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	_, pool := storetest.Open(t, address)
	storetest.Execute(t, pool, `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET client_encoding = LATIN1', current_database());
		EXECUTE format('ALTER DATABASE %I SET datestyle = German', current_database());
	END $$`)
	s, pool := storetest.Open(t, address)
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Say("u", "你好")
	var stored string
	if err := pool.QueryRow(t.Context(), "SELECT encode(convert_to(content, 'UTF8'), 'hex') FROM dingtalk_session_events WHERE role = 'user' ORDER BY id DESC LIMIT 1").Scan(&stored); err != nil || stored != "e4bda0e5a5bd" {
		t.Errorf("the words are stored as %s (%v)", stored, err)
	}
	day := memory.Day{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Date: "2026-11-30"}
	if _, err := s.Digests.DigestsDue(t.Context(), "a", []memory.Day{day}, memory.DigestDue{}); err != nil {
		t.Errorf("digests: %v", err)
	}
}

// Another client of a pooler may use the process that answered last. A pooler that uses its processes in turn shows the same.
func TestTraceOfPoolers(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	for name, tt := range map[string]struct {
		settings string
		want     sql.Between
	}{
		"in turn":    {"pool_mode = transaction\nserver_round_robin = 1", sql.TransactionPooler},
		"by session": {"pool_mode = session", sql.SessionPooler},
	} {
		t.Run(name, func(t *testing.T) {
			through := sqltest.PoolerOf(t, address, tt.settings+"\nignore_startup_parameters = extra_float_digits\n").Through(address)
			useProcesses(t, through, 4)
			for range 5 {
				if lead, err := sql.Trace(t.Context(), through); err != nil || lead.Between != tt.want {
					t.Errorf("found %q (%v), want %q", lead.Between, err, tt.want)
				}
			}
		})
	}
}

// useProcesses has the pooler start processes, by transactions at the same time.
func useProcesses(t *testing.T, address string, count int) {
	t.Helper()
	for range count {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
				t.Error(err)
			}
		}()
	}
}
