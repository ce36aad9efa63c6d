package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	evalDocs    = ".docs.jsonl"
	evalQueries = ".queries.jsonl"
)

// Errors name file and line.
func readEval(dir string) (*evalTalks, []evalQuery, error) {
	talks := &evalTalks{byName: make(map[string]*evalTalk), docs: make(map[string]int), same: make(map[string]int64)}
	ids := make(map[string]bool)
	n, err := eachLine(dir, evalDocs, func(set string, data []byte) error {
		var d evalDoc
		if err := evalDecode(data, &d, "conv, id, text"); err != nil {
			return err
		}
		if ids[d.ID] {
			return fmt.Errorf("a document %q came before", d.ID)
		}
		ids[d.ID] = true
		return talks.addLine(set, d)
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: no file there ends with %s", dir, evalDocs)
	}
	if err != nil {
		return nil, nil, err
	}
	var queries []evalQuery
	asked := make(map[string]bool)
	n, err = eachLine(dir, evalQueries, func(set string, data []byte) error {
		q := evalQuery{set: set}
		if err := evalDecode(data, &q, "conv, qid, query"); err != nil {
			return err
		}
		switch {
		case q.ID == "" || strings.TrimSpace(q.Text) == "":
			return errors.New("got no qid or no query, want an object with conv, qid, query")
		case asked[q.ID]:
			return fmt.Errorf("a query %q came before", q.ID)
		case talks.byName[q.Conv] == nil:
			return fmt.Errorf("query %q asks in the conversation %q, which has no documents", q.ID, q.Conv)
		}
		asked[q.ID] = true
		queries = append(queries, q)
		return nil
	})
	switch {
	case err != nil:
	case n == 0:
		err = fmt.Errorf("%s: no file there ends with %s", dir, evalQueries)
	case len(queries) == 0:
		err = fmt.Errorf("%s: the files that end with %s have no query", dir, evalQueries)
	}
	return talks, queries, err
}

// evalDecode describes faults in words of the format rather than of Go.
func evalDecode(line []byte, to any, fields string) error {
	err := json.Unmarshal(line, to)
	kind, wrong := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case wrong && kind.Field != "":
		return fmt.Errorf("%s: got %s, want a string", kind.Field, withArticle(kind.Value))
	case wrong:
		return fmt.Errorf("got %s, want an object with %s", withArticle(kind.Value), fields)
	case err != nil:
		return fmt.Errorf("want an object with %s: %w", fields, err)
	}
	return nil
}

func withArticle(kind string) string {
	kind, _, _ = strings.Cut(kind, " ") // the decoder names the number's type behind it
	switch kind {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// checkOut refuses to overwrite a file that is no run, such as the data.
func checkOut(dir, out string) error {
	info, err := os.Stat(out)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	switch {
	case out == "" || err != nil:
		return errors.Join(errors.New("--out: want the name of a file"), err)
	case info != nil && info.IsDir():
		return fmt.Errorf("--out %s: is a folder, want the name of a file", out)
	case strings.HasSuffix(out, ".jsonl") && isWithin(dir, out):
		return fmt.Errorf("--out %s: is a .jsonl among the data in --data; name a file elsewhere", out)
	case info == nil || !info.Mode().IsRegular():
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		input := strings.HasSuffix(e.Name(), evalDocs) || strings.HasSuffix(e.Name(), evalQueries)
		if other, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && input && os.SameFile(info, other) {
			return fmt.Errorf("--out %s: is %s, which is read", out, e.Name())
		}
	}
	if info.Size() == 0 { // as mktemp makes one
		return nil
	}
	isRun := errors.New("is") // ends the reading after one line
	err = linesOf(out, func(line []byte) error {
		var l evalLine
		if json.Unmarshal(line, &l) == nil && l.ID != "" && l.Docs != nil {
			return isRun
		}
		return errors.New("no run")
	})
	if !errors.Is(err, isRun) {
		return fmt.Errorf("--out %s: there is a file that is no run; delete it, or name another", out)
	}
	return nil
}

func isWithin(dir, file string) bool {
	whole := func(path string) string {
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		return path
	}
	rel, err := filepath.Rel(whole(dir), filepath.Join(whole(filepath.Dir(file)), filepath.Base(file)))
	return err == nil && filepath.IsLocal(rel)
}

func eachLine(dir, suffix string, do func(set string, line []byte) error) (files int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		set, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || e.IsDir() {
			continue
		}
		files++
		path := filepath.Join(dir, e.Name())
		if err := linesOf(path, func(line []byte) error { return do(set, line) }); err != nil {
			return files, err
		}
	}
	return files, nil
}

func linesOf(path string, do func([]byte) error) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // as some editors begin a file
		}
		if strings.TrimSpace(string(line)) != "" {
			if err := do(line); err != nil {
				return fmt.Errorf("%s:%d: %w", path, n, err)
			}
		}
		if err != nil {
			return nil
		}
	}
}
