package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"

	"ebb/bot/dingtalk/dingtalktest"
)

// cmdAttached is: CONV NAME [N].
func (w *world) cmdAttached(args []string) error {
	count := func() int { return len(w.attached(args[0], args[1])) }
	if len(args) < 3 {
		return w.until("a file "+args[1], patience, func() (bool, string) { return count() > 0, "none" })
	}
	if err := w.settle(); err != nil {
		return err
	}
	if n := count(); strconv.Itoa(n) != args[2] {
		return fmt.Errorf("%d files %s, want %s", n, args[1], args[2])
	}
	return nil
}

// attached are the messages of a conversation with a file of a name, "*" for any.
func (w *world) attached(conv, name string) (found []dingtalktest.Reply) {
	id := w.conversation(conv)
	for _, r := range w.ding.Replies(id) {
		if r.Media == "" {
			continue
		}
		if got, _, ok := w.ding.Media(r.Media); ok && (name == "*" || got == name) {
			found = append(found, r)
		}
	}
	return found
}

// cmdSheet is: CONV NAME TEXT….
func (w *world) cmdSheet(args []string) error {
	found := w.attached(args[0], args[1])
	if len(found) == 0 {
		return errors.New("no such file")
	}
	_, data, _ := w.ding.Media(found[len(found)-1].Media)
	book, err := excelize.OpenReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer func() { _ = book.Close() }()
	var b strings.Builder
	for _, sheet := range book.GetSheetList() {
		rows, err := book.GetRows(sheet)
		if err != nil {
			return err
		}
		b.WriteString(sheet + "\n")
		for _, row := range rows {
			b.WriteString(strings.Join(row, "\t") + "\n")
		}
	}
	rest := b.String()
	for _, want := range args[2:] {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			return fmt.Errorf("no cell has %q, in this order:\n%s", want, b.String())
		}
		rest = after
	}
	return nil
}

// cmdUpload is: WHAT [N], or expire.
func (w *world) cmdUpload(args []string) error {
	if args[0] == "expire" {
		w.ding.ExpireMedia()
		return nil
	}
	n, err := strconv.Atoi(cmp.Or(append(args, "")[1], "1"))
	if err != nil {
		return err
	}
	w.failFiles(dingtalktest.RouteUpload, args[0], n)
	return nil
}

// cmdMessages is: WHAT. The next message of the open API to a group goes wrong.
func (w *world) cmdMessages(args []string) error {
	w.failFiles(dingtalktest.RouteGroupSend, args[0], 1)
	return nil
}

func (w *world) failFiles(route, what string, n int) {
	f := dingtalktest.Fault{Route: route, Count: n}
	if late, err := time.ParseDuration(what); err == nil {
		f.Action = dingtalktest.Action{Before: late}
	} else if code, err := strconv.Atoi(what); err == nil && code < 1000 {
		f.Action = dingtalktest.Status(code)
	} else if err == nil {
		f.Action = dingtalktest.ErrCode(code, "refused")
	} else {
		f.Action = dingtalktest.Do(what)
	}
	w.ding.AddFault(f)
}
