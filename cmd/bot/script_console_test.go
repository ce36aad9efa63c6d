package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// consoleToken is the token of all replicas.
const consoleToken = "scenario-token-0001"

// consoleAnswer sends a request to a replica's console, as an administrator.
func (w *world) consoleAnswer(method, name, path string) (status int, page string, err error) {
	r := w.replicas[name]
	if r == nil || r.admin() == "" {
		return 0, "", fmt.Errorf("replica %q has no console", name)
	}
	req, err := http.NewRequest(method, "http://"+r.admin()+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+consoleToken)
	if !strings.HasPrefix(path, "/api/") {
		if w.consoleLogin == nil {
			if w.consoleLogin, err = logIn(r.admin()); err != nil {
				return 0, "", err
			}
		}
		req.AddCookie(w.consoleLogin)
	}
	resp, err := probe.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// logIn returns the cookie of a login, which all replicas know.
func logIn(address string) (*http.Cookie, error) {
	client := probe
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.PostForm("http://"+address+"/login", url.Values{"token": {consoleToken}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	for _, cookie := range resp.Cookies() {
		if cookie.Name == "ebb_console" {
			return cookie, nil
		}
	}
	return nil, fmt.Errorf("the login is answered with %d, without a cookie", resp.StatusCode)
}

// cmdPage waits for a page of a replica's console that has all the words: page REPLICA PATH WORDS...
func (w *world) cmdPage(args []string) error {
	return w.until(fmt.Sprintf("page %s of %s to have %q", args[1], args[0], args[2:]), patience, func() (bool, string) {
		status, page, err := w.consoleAnswer(http.MethodGet, args[0], args[1])
		if err != nil {
			return false, err.Error()
		}
		for _, word := range args[2:] {
			if !strings.Contains(page, word) {
				return false, fmt.Sprintf("%d, without %q: %.3000s", status, word, page)
			}
		}
		return status == http.StatusOK, strconv.Itoa(status)
	})
}

// cmdPost presses a button of a replica's console and checks the status of the page after it: post REPLICA PATH STATUS
func (w *world) cmdPost(args []string) error {
	status, page, err := w.consoleAnswer(http.MethodPost, args[0], args[1])
	if err != nil {
		return err
	}
	if strconv.Itoa(status) != args[2] {
		return fmt.Errorf("post %s: %d, want %s: %.2000s", args[1], status, args[2], page)
	}
	return nil
}
