package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cmdPoison kills the replica that asks the model for a word, a while after each request, and starts it again, until no message
// with the word waits. Replicas are found by cluster.replica_id, which is their name. There are three to MOST deaths.
func (w *world) cmdPoison(args []string) error {
	word := args[0]
	most, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	pause, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	waits := fmt.Sprintf(`SELECT split_part(coalesce(s.lease_owner, ''), '-', 1)
		FROM dingtalk_session_events e JOIN dingtalk_sessions s ON s.session_key = e.session_key
		WHERE e.state = 'pending' AND e.content LIKE '%%%s%%'`, word)
	deaths := 0
	for began := time.Now(); ; deaths++ {
		var owner string
		if err := w.until(fmt.Sprintf("request %d of %s", deaths+1, word), patience, func() (bool, string) {
			rows, err := w.query(waits)
			if err != nil {
				return false, err.Error()
			}
			if owner = strings.Join(rows, ""); owner == "" && deaths > 0 {
				return len(rows) == 0, "the message has no owner"
			}
			n := w.main.count(which(word))
			return n > deaths, fmt.Sprintf("%d requests came, %s has the message", n, owner)
		}); err != nil {
			return err
		}
		if owner == "" {
			w.t.Logf("%s is set aside after %d deaths in %s", word, deaths, time.Since(began).Round(time.Second))
			break
		}
		r := w.replicas[owner]
		if r == nil {
			return fmt.Errorf("no replica %q was started", owner)
		}
		<-time.After(pause)
		r.kill()
		w.killed = time.Now()
		if err := w.cmdConfig([]string{"cluster.replica_id", owner}); err != nil {
			return err
		}
		if err := w.cmdReplica([]string{"start", owner}); err != nil {
			return err
		}
	}
	if deaths < 3 || deaths > most {
		return fmt.Errorf("%s is set aside after %d deaths, want 3 to %d", word, deaths, most)
	}
	return nil
}

// cmdRecovered waits for the answers to a crowd, and compares their time since the latest kill.
func (w *world) cmdRecovered(args []string) error {
	within, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	if err := w.cmdAnswered(args[:2]); err != nil {
		return err
	}
	groups, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	last := time.Time{}
	for i := range groups {
		for _, r := range w.ding.Replies(w.conversation(fmt.Sprint("crowd", i))) {
			if r.Time.After(last) {
				last = r.Time
			}
		}
	}
	took := last.Sub(w.killed)
	w.t.Logf("all are answered %s after the kill", took.Round(10*time.Millisecond))
	if took > within || last.IsZero() {
		return fmt.Errorf("all are answered %s after the kill, want %s", took, within)
	}
	return nil
}
