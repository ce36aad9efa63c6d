package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/bot/config"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sql/localpg"
	"ebb/sql/sqltest"
)

// postgres is the database server of a scenario, and what can be done to it.
type postgres struct {
	own    *localpg.Server // nil without a server of the scenario's own
	pooler *sqltest.Bouncer
	disk   string    // folder of the data on a small disk of their own; empty: no such disk
	mended time.Time // when the latest trouble ended
}

// botRole is who replicas are for a server of the scenario's own. The scenario itself is a superuser there.
const botRole = "bot"

func (w *world) cmdPostgres(args []string) error {
	switch args[0] {
	case "own":
		return w.serveOwn()
	case "private":
		dir := filepath.Join(w.shared, "pg")
		w.url = "postgres://ebb@/ebb?port=5432&sslmode=disable&host=" + dir
		w.config["database"] = map[string]any{"url": "", "dir": dir}
		return nil
	case "gone":
		return w.until("the server to be gone", patience, func() (bool, string) {
			_, err := w.query("SELECT 1")
			return err != nil, "it answers"
		})
	case "stop":
		return w.stopOwn()
	}
	defer func() { w.db.mended = time.Now() }()
	switch args[0] {
	case "start":
		return w.startOwn()
	case "slow":
		return w.slow(strings.Join(args[1:], ""))
	case "pooler":
		return w.pool(args[1:])
	case "disk", "full", "room":
		return w.fill(args[0])
	case "do":
		return w.order(strings.Join(args[1:], ""))
	case "deadlock":
		return w.deadlock()
	}
	return fmt.Errorf("postgres %s?", args[0])
}

// serveOwn starts a server for this scenario alone. Replicas are no superusers there, as anywhere.
func (w *world) serveOwn() error {
	if err := w.startOwn(); err != nil {
		return err
	}
	w.url = w.db.own.URL()
	if err := w.order("CREATE ROLE " + botRole + " LOGIN; ALTER DATABASE ebb OWNER TO " + botRole); err != nil {
		return err
	}
	w.config["database"] = map[string]any{"url": w.asBot()}
	return nil
}

// asBot is the address of the database as replicas have it, without what may stand between.
func (w *world) asBot() string {
	u, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatalf("the database's own address can't be read: %v", err)
	}
	u.User = url.User(botRole)
	return u.String()
}

func (w *world) startOwn() (err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	w.db.own, err = localpg.Start(ctx, localpg.Options{Dir: filepath.Join(w.shared, "pg"), NoSync: true})
	return err
}

func (w *world) stopOwn() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), time.Minute)
	defer cancel()
	own := w.db.own
	w.db.own = nil
	return own.Stop(ctx)
}

// endPostgres ends what the scenario started.
func (w *world) endPostgres() error {
	var err error
	if w.db.own != nil {
		err = w.stopOwn()
	}
	if w.db.disk != "" {
		err = errors.Join(err, exec.Command("umount", w.db.disk).Run())
	}
	return err
}

// order has the superuser do something, with a connection of its own.
func (w *world) order(statements string) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statements)
	return err
}

// slow makes every statement that comes by a network take so much longer.
func (w *world) slow(by string) error {
	late, err := time.ParseDuration(by)
	for _, n := range w.networks {
		n.Delay(late)
	}
	return err
}

// pool puts a PgBouncer before the server, or stops or starts it.
func (w *world) pool(args []string) error {
	switch strings.Join(args, "") {
	case "":
		w.db.pooler = sqltest.Pooler(w.t, w.asBot())
		w.config["database"] = map[string]any{"url": w.db.pooler.Through(w.url), "direct_url": w.asBot(), "pooler": config.PoolerTransaction}
	case "stop":
		w.db.pooler.Stop()
	case "start":
		w.db.pooler.Start()
	default:
		return fmt.Errorf("postgres pooler %s?", args[0])
	}
	return nil
}

// fill gives the database a small disk of its own, fills that, or makes room again.
func (w *world) fill(what string) error {
	ballast := filepath.Join(w.shared, "disk", "ballast")
	switch {
	case what == "disk":
		return w.mount(filepath.Dir(ballast))
	case w.db.disk == "" && what == "full":
		return w.order(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
			CREATE TRIGGER full_disk BEFORE INSERT ON dingtalk_session_events EXECUTE FUNCTION full_disk()`)
	case w.db.disk == "":
		return w.order("DROP FUNCTION full_disk CASCADE")
	case what == "room":
		return os.Remove(ballast)
	}
	f, err := os.Create(ballast)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 16; ; {
		if _, err := f.Write(make([]byte, size)); err != nil && size == 1 {
			return nil // not a byte is left
		} else if err != nil {
			size = max(1, size/2)
		}
	}
}

// mount puts the database on a file system of a few megabytes. On a machine that forbids mounts, a trigger simulates a
// full disk, with the server's own code.
func (w *world) mount(dir string) error {
	data, err := os.Stat(filepath.Join(w.shared, "pg"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=32m", "none", dir).CombinedOutput(); err != nil {
		w.t.Logf("a full disk is only played: %v: %s", err, out)
		return nil
	}
	w.db.disk = dir
	place, owner := filepath.Join(dir, "data"), data.Sys().(*syscall.Stat_t)
	if err := errors.Join(os.Mkdir(place, 0o700), os.Chown(place, int(owner.Uid), int(owner.Gid))); err != nil {
		return err
	}
	if err := w.order("CREATE TABLESPACE small LOCATION '" + place + "'"); err != nil {
		return err
	}
	return w.order("ALTER ROLE " + botRole + " SET default_tablespace = small; GRANT CREATE ON TABLESPACE small TO " + botRole)
}

// deadlock waits until a replica that holds the sessions waits for the outbox, which we hold, and then for these. One
// of the two has to give in, and it is not us.
func (w *world) deadlock() error {
	const waits = `SELECT count(*) FROM pg_locks a JOIN pg_locks b ON a.pid = b.pid
		WHERE NOT a.granted AND a.relation = 'outbox'::regclass AND b.granted AND b.relation = 'dingtalk_sessions'::regclass`
	if err := w.until("a replica to wait", patience, func() (bool, string) {
		rows, err := w.query(waits)
		return err == nil && rows[0] != "0", fmt.Sprint(rows, err)
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if _, err := w.holder.Exec(ctx, "SET LOCAL deadlock_timeout = '10min'; LOCK TABLE dingtalk_sessions"); err != nil {
		return err
	}
	return w.letTableGo()
}

// backWithin bounds how long replicas may take to get on once a trouble is over.
const backWithin = 5 * time.Second

// cmdBack waits for a reply that comes soon after the latest trouble ended, and says how soon.
func (w *world) cmdBack(args []string) error {
	if err := w.cmdReply([]string{args[0], args[1]}); err != nil {
		return err
	}
	r, _ := w.find(args[0], args[1])
	took := r.Time.Sub(w.db.mended)
	w.t.Logf("%s was answered with %s %s after the trouble", args[0], args[1], took.Round(time.Millisecond))
	if took > backWithin {
		return fmt.Errorf("the reply came %s after the trouble, want %s at most", took, backWithin)
	}
	return nil
}

// bridgedWithin bounds how long a replica may refuse messages once a trouble is over.
const bridgedWithin = 1500 * time.Millisecond

// cmdBridged waits for an ack of a message that came during a short trouble. If this machine takes longer to end the
// trouble than a push waits, the push is refused, and DingTalk repeats it.
func (w *world) cmdBridged(args []string) error {
	if err := w.accepted(args[0]); err != nil {
		return err
	}
	for _, e := range w.ding.Transcript() {
		if e.Kind == "ack" && e.MsgID == args[0] && e.Status != http.StatusOK {
			late := e.Time.Sub(w.db.mended)
			w.t.Logf("%s was refused %s after the trouble", args[0], late.Round(time.Millisecond))
			if late > bridgedWithin {
				return fmt.Errorf("%s was refused %s after the trouble, want %s at most", args[0], late, bridgedWithin)
			}
		}
	}
	return nil
}

// calmFor is how long a replica is watched.
const calmFor = 2 * time.Second

// cmdCalm watches a replica that can't work: it writes few lines and keeps no core busy.
func (w *world) cmdCalm(args []string) error {
	most, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	r := w.replicas[args[0]]
	if r == nil {
		return fmt.Errorf("no replica %q was started", args[0])
	}
	lines, spent := strings.Count(r.log(), "\n"), r.spent()
	<-time.After(calmFor) // the absence of an event can't be awaited
	lines, spent = strings.Count(r.log(), "\n")-lines, r.spent()-spent
	w.t.Logf("%s wrote %d lines and used a core for %.2f s within %s", r.name, lines, spent, calmFor)
	if lines > most || spent > calmFor.Seconds()/2 {
		return fmt.Errorf("%s wrote %d lines and used a core for %.2f s within %s: want %d lines", r.name, lines, spent, calmFor, most)
	}
	return nil
}

// spent is a replica's use of a core in seconds, by its own figures; 0 where the system has no figure.
func (r *replica) spent() float64 {
	seconds, _ := strconv.ParseFloat(r.metric("process_cpu_seconds_total"), 64)
	return seconds
}

// cmdMetric is: REPLICA NAME{LABELS} VALUE. It waits until the metric has the value.
func (w *world) cmdMetric(args []string) error {
	r := w.replicas[args[0]]
	if r == nil {
		return fmt.Errorf("no replica %q was started", args[0])
	}
	return w.until(args[1]+" to be "+args[2], patience/4, func() (bool, string) {
		got := r.metric(args[1])
		return got == args[2], got
	})
}

// metric is the value of a replica's metric as it stands in /metrics; empty for none.
func (r *replica) metric(name string) string {
	resp, err := probe.Get("http://" + r.admin() + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return ""
	}
	text, _ := io.ReadAll(resp.Body)
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// cmdStored compares the acknowledged messages with the log: each message once.
func (w *world) cmdStored(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	acked := map[string]bool{}
	for _, e := range w.ding.Transcript() {
		if e.Kind == "ack" && e.MsgID != "" && e.Status == 200 {
			acked[e.MsgID] = true
		}
	}
	if len(acked) != want {
		return fmt.Errorf("%d messages were acknowledged, want %d", len(acked), want)
	}
	rows, err := w.query("SELECT msg_id FROM dingtalk_session_events WHERE msg_id <> ''")
	if err != nil {
		return err
	}
	stored := map[string]int{}
	for _, id := range rows {
		stored[id]++
	}
	for id := range acked {
		if stored[id] != 1 {
			return fmt.Errorf("message %s was acknowledged and is in the log %d times", id, stored[id])
		}
	}
	return nil
}

// cmdFlock has people speak in a number of groups at once, in rounds. With "later" the answers are not waited for, with
// "acked" the acknowledgements alone are.
func (w *world) cmdFlock(args []string) error {
	groups, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	round, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for i := range groups {
		n := round*1000 + i
		if err := w.cmdSay([]string{fmt.Sprint("crowd", i), "张伟", fmt.Sprint("crowd-", n), fmt.Sprint("Q", n)}); err != nil {
			return err
		}
	}
	if len(args) == 2 {
		return w.cmdAnswered(args)
	}
	for i := 0; i < groups && args[2] == "acked"; i++ {
		if err := w.accepted(fmt.Sprint("crowd-", round*1000+i)); err != nil {
			return err
		}
	}
	return nil
}

// accepted waits until a message is acknowledged. Each push without success is followed by another, as DingTalk does it: a
// busy machine may be late for one.
func (w *world) accepted(msgID string) error {
	pushes := 1
	return w.until("an ack of "+msgID, patience, func() (bool, string) {
		good, bad := w.acks(msgID)
		if good == 0 && bad >= pushes {
			pushes = bad + 1
			w.ding.Redeliver(msgID, dingtalktest.RedeliverOptions{Times: 1})
		}
		return good > 0, fmt.Sprintf("%d pushes without success", bad)
	})
}

// cmdAnswered waits for the answers to a crowd: each once.
func (w *world) cmdAnswered(args []string) error {
	groups, round := 0, 0
	if _, err := fmt.Sscan(args[0]+" "+args[1], &groups, &round); err != nil {
		return err
	}
	for i := range groups {
		if err := w.accepted(fmt.Sprint("crowd-", round*1000+i)); err != nil {
			return err
		}
		if err := w.cmdReply([]string{fmt.Sprint("crowd", i), fmt.Sprint("A", round*1000+i)}); err != nil {
			return err
		}
	}
	for i := range groups {
		if err := w.cmdReplies([]string{fmt.Sprint("crowd", i), "1", fmt.Sprint("A", round*1000+i)}); err != nil {
			return err
		}
	}
	return nil
}

// cmdAgain pushes each message again that was not acknowledged.
func (w *world) cmdAgain([]string) error {
	for _, e := range w.ding.Transcript() {
		if e.Kind != "say" {
			continue
		}
		if good, _ := w.acks(e.MsgID); good == 0 {
			if err := w.cmdRedeliver([]string{e.MsgID, "1"}); err != nil {
				return err
			}
		}
	}
	return nil
}
