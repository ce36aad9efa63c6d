package main

import (
	"bufio"
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

// readEval reads all of a folder's conversations and queries. Its errors name file and line.
func readEval(dir string) (*evalTalks, []evalQuery, error) {
	talks := &evalTalks{byName: make(map[string]*evalTalk), docs: make(map[string]int), same: make(map[string]int64)}
	ids := make(map[string]bool)
	n, err := eachLine(dir, evalDocs, func(set string, data []byte) error {
		var d evalDoc
		if err := json.Unmarshal(data, &d); err != nil {
			return err
		}
		if ids[d.ID] {
			return fmt.Errorf("a document %q came before", d.ID)
		}
		ids[d.ID] = true
		return talks.add(set, d)
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: no file there ends with %s", dir, evalDocs)
	}
	if err != nil {
		return nil, nil, err
	}
	var queries []evalQuery
	n, err = eachLine(dir, evalQueries, func(set string, data []byte) error {
		q := evalQuery{set: set}
		if err := json.Unmarshal(data, &q); err != nil {
			return err
		}
		if q.ID == "" {
			return errors.New("got no qid")
		}
		if talks.byName[q.Conv] == nil {
			return fmt.Errorf("query %q asks in the conversation %q, which has no documents", q.ID, q.Conv)
		}
		queries = append(queries, q)
		return nil
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: no file there ends with %s", dir, evalQueries)
	}
	return talks, queries, err
}

// eachLine calls do for each line of the files of a folder that end with suffix, and returns how many files those are.
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
