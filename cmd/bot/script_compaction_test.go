package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/bot/openai/openaitest"
	"ebb/compaction/transcript"
)

// newestOf is the newest request of those that a scenario names.
func (m *scriptModel) newestOf(name string) (openaitest.Request, error) {
	requests, match := m.Requests(), which(name)
	for _, r := range slices.Backward(requests) {
		if match(r) {
			return r, nil
		}
	}
	return openaitest.Request{}, fmt.Errorf("no request of %s came", name)
}

// cmdRead looks for texts in the newest request of a kind, in their order.
func (w *world) cmdRead(args []string) error {
	r, err := w.main.newestOf(args[0])
	if err != nil {
		return err
	}
	rest := r.Text()
	for _, want := range args[1:] {
		_, after, found := cutWord(rest, want)
		if !found {
			return fmt.Errorf("%q does not stand there in the newest request of %s:\n%s", want, args[0], r.Text())
		}
		rest = after
	}
	return nil
}

// cutWord is strings.Cut for a word as hasWord finds it.
func cutWord(text, want string) (before, after string, found bool) {
	for at := 0; ; {
		i := strings.Index(text[at:], want)
		if i < 0 {
			return text, "", false
		}
		at += i + len(want)
		if hasWord(text[at-len(want):min(len(text), at+1)], want) {
			return text[:at-len(want)], text[at:], true
		}
	}
}

func (w *world) cmdNotRead(args []string) error {
	r, err := w.main.newestOf(args[0])
	if err != nil {
		return err
	}
	for _, bad := range args[1:] {
		if hasWord(r.Text(), bad) {
			return fmt.Errorf("%q is in the newest request of %s:\n%s", bad, args[0], r.Text())
		}
	}
	return nil
}

// cmdRaw compares the numbered questions that the newest chat request shows as people's own messages with first to last.
func (w *world) cmdRaw(args []string) error {
	first, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	last, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	r, err := w.main.newestOf("chat")
	if err != nil {
		return err
	}
	var got, want []string
	for _, m := range r.Messages {
		if m.Role == "user" && !strings.Contains(m.Content, "<<<") {
			got = append(got, trimEach(questionRE.FindAllString(m.Content, -1), "Q")...)
		}
	}
	for n := first; n <= last; n++ {
		want = append(want, strconv.Itoa(n))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the newest chat request shows the questions %v, want %v", got, want)
	}
	return nil
}

// offloadedRE finds where a result was moved to.
var offloadedRE = regexp.MustCompile(`Tool result is at: (\S+)`)

// cmdTool has the model call a tool before it answers certain words. $PATH in the arguments is where the first result
// that the request does not show any more was moved to.
func (w *world) cmdTool(args []string) error {
	match, n := which(args[0]), 1
	if len(args) > 3 {
		var err error
		if n, err = strconv.Atoi(args[3]); err != nil {
			return err
		}
	}
	w.main.Add(openaitest.WhenFunc(match, func(r openaitest.Request) openaitest.Reply {
		path := ""
		if m := offloadedRE.FindStringSubmatch(r.Text()); m != nil {
			path = m[1]
		}
		return openaitest.Calls(args[1], strings.ReplaceAll(args[2], "$PATH", path))
	}).Times(n))
	return nil
}

func (w *world) cmdSpare(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if w.spare == nil {
		return fmt.Errorf("there is no second model")
	}
	if n := len(w.spare.Requests()); n != want {
		return fmt.Errorf("the second model was asked %d times, want %d", n, want)
	}
	return nil
}

func (w *world) cmdVariable(args []string) error {
	w.env = append(w.env, args[0]+"="+args[1])
	return nil
}

// cmdHoldTable locks a table, or rows of it by a condition on its first column, until it is released: writers wait, readers do not.
func (w *world) cmdHoldTable(args []string) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return err
	}
	w.holder = conn
	table := pgx.Identifier{args[0]}.Sanitize()
	order := "LOCK TABLE " + table + " IN EXCLUSIVE MODE"
	if len(args) > 1 { // a cluster updates rows of several nodes, and locks them in no other way
		column, _, _ := strings.Cut(args[1], " ")
		order = "UPDATE " + table + " SET " + column + " = " + column + " WHERE " + args[1]
	}
	_, err = conn.Exec(ctx, "BEGIN; "+order)
	return err
}

func (w *world) letTableGo() error {
	if w.holder == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), 5*time.Second)
	defer cancel()
	err := w.holder.Close(ctx) // which ends the transaction, and its lock
	w.holder = nil
	return err
}

func (w *world) cmdTable(args []string) error {
	switch {
	case args[0] == "hold" && len(args) >= 2:
		return w.cmdHoldTable(args[1:])
	case args[0] == "release" && len(args) == 1:
		return w.letTableGo()
	}
	return fmt.Errorf("table hold NAME [WHERE], or table release")
}

// cmdReached compares the stored results of tools with the requests of a kind: each line of a large one stands in the
// texts that these have of it. There are as many large results as said.
func (w *world) cmdReached(args []string) error {
	rows, err := w.query(`SELECT seq, encode(convert_to(content, 'UTF8'), 'hex') FROM dingtalk_session_events
		WHERE role = 'tool' AND octet_length(content) > 2000 ORDER BY id`)
	if err != nil {
		return err
	}
	if got := strconv.Itoa(len(rows)); got != args[1] {
		return fmt.Errorf("%s large results of tools are stored, want %s", got, args[1])
	}
	read, match := map[string]string{}, which(args[0])
	for _, r := range w.main.Requests() {
		for line := range strings.Lines(r.Text()) {
			var one struct {
				N    int64
				Text string
			}
			if match(r) && strings.HasPrefix(line, `{"n":`) && json.Unmarshal([]byte(line), &one) == nil {
				read[strconv.FormatInt(one.N, 10)] += one.Text
			}
		}
	}
	for _, row := range rows {
		seq, body, _ := strings.Cut(row, "|")
		whole, err := hex.DecodeString(body)
		if err != nil {
			return err
		}
		n, all := 0, 0
		for line := range strings.Lines(transcript.Clean(string(whole))) {
			if all++; strings.Contains(read[seq], line) {
				n++
			}
		}
		if n < all {
			return fmt.Errorf("requests of %s have %d of %d lines of event %s", args[0], n, all, seq)
		}
	}
	return nil
}
