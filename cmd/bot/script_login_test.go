package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"

	"ebb/bot/config"
)

// publicConsole is the address by which people know the console: a proxy before all replicas.
const publicConsole = "http://localhost"

// person's browser keeps cookies of the public address; each request goes to the replica that the proxy chose.
type scriptBrowser struct {
	http    *http.Client
	replica string
}

func (w *world) browser(nick string) *scriptBrowser {
	if b := w.browsers[nick]; b != nil {
		return b
	}
	jar, _ := cookiejar.New(nil) // it has no options that could be wrong
	b := &scriptBrowser{}
	dialer := &net.Dialer{}
	b.http = &http.Client{Timeout: probe.Timeout, Jar: jar, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "localhost:") {
				r := w.replicas[b.replica]
				if r == nil || r.admin() == "" {
					return nil, fmt.Errorf("replica %q has no console", b.replica)
				}
				address = r.admin()
			}
			return dialer.DialContext(ctx, network, address)
		},
	}}
	w.browsers[nick] = b
	return b
}

// ask requests an address in a person's browser. to is where it leads; redirects are followed if follow is set.
func (w *world) ask(nick, replica, method, address string, follow bool) (status int, page string, to *url.URL, err error) {
	b := w.browser(nick)
	b.replica = replica
	client := *b.http
	if !follow {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		return 0, "", nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if to, missing := resp.Location(); missing == nil {
		return resp.StatusCode, string(text), to, err
	}
	return resp.StatusCode, string(text), nil, err
}

// cmdEnter logs a person in by DingTalk: enter NICK BEGIN END [STATUS]. The login begins on one replica and ends on another.
func (w *world) cmdEnter(args []string) error {
	nick, want := args[0], "200"
	if len(args) > 3 {
		want = args[3]
	}
	_, page, to, err := w.ask(nick, args[1], http.MethodGet, publicConsole+"/login/dingtalk", false)
	if err != nil || to == nil {
		return fmt.Errorf("the login of %s begins with %v, %w: %.500s", nick, to, err, page)
	}
	_, page, back, err := w.ask(nick, "", http.MethodGet, to.String()+"&person="+w.person(nick), false)
	if err != nil || back == nil || !strings.HasPrefix(back.String(), publicConsole+config.LoginPath+"?") {
		return fmt.Errorf("DingTalk leads %s to %v, %w: %.500s", nick, back, err, page)
	}
	w.secrets = append(w.secrets, back.Query().Get("authCode"), back.Query().Get("state"))
	status, page, _, err := w.ask(nick, args[2], http.MethodGet, back.String(), true)
	if err == nil && strconv.Itoa(status) != want {
		err = fmt.Errorf("the login of %s ends with %d, want %s: %.2000s", nick, status, want, page)
	}
	return err
}

// cmdLeave logs a person out: leave NICK REPLICA.
func (w *world) cmdLeave(args []string) error {
	status, page, _, err := w.ask(args[0], args[1], http.MethodPost, publicConsole+"/logout", true)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("logout: %d %.500s", status, page)
	}
	return err
}

// cmdVisit waits for a page in a person's browser that has all the words: visit NICK REPLICA PATH WORDS...
func (w *world) cmdVisit(args []string) error {
	return w.until(fmt.Sprintf("page %s of %s for %s to have %q", args[2], args[1], args[0], args[3:]), patience, func() (bool, string) {
		status, page, _, err := w.ask(args[0], args[1], http.MethodGet, publicConsole+args[2], true)
		if err != nil {
			return false, err.Error()
		}
		for _, word := range args[3:] {
			if !strings.Contains(page, word) {
				return false, fmt.Sprintf("%d, without %q: %.3000s", status, word, page)
			}
		}
		return true, ""
	})
}

// cmdNotVisit reads the page once: it has none of the words.
func (w *world) cmdNotVisit(args []string) error {
	_, page, _, err := w.ask(args[0], args[1], http.MethodGet, publicConsole+args[2], true)
	for _, word := range args[3:] {
		if strings.Contains(page, word) {
			err = errors.Join(err, fmt.Errorf("page %s for %s has %q", args[2], args[0], word))
		}
	}
	return err
}

// cmdSecretive checks that a replica logged neither a code nor a state of a login: secretive REPLICA.
func (w *world) cmdSecretive(args []string) error {
	if len(w.secrets) == 0 {
		return errors.New("no login has begun")
	}
	for _, secret := range w.secrets {
		if err := w.cmdNotLog([]string{args[0], secret}); err != nil {
			return err
		}
	}
	return nil
}
