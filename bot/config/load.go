package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxSize keeps a wrong path (a log, a database) from being parsed; a config has a few kilobytes.
const maxSize = 256 << 10

// Load reads a config file on top of the defaults, replaces ${NAME} from getenv, and checks it. An empty path means
// the defaults alone. The error is a *Error with all faults, each with file, line and column.
func Load(path string, getenv func(string) string, need Need, overrides ...Override) (*Config, error) {
	if path == "" {
		return load(newSource("", nil, getenv), need, overrides...)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		problem := err.Error()
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			problem = pe.Err.Error()
		}
		return nil, &Error{[]*FieldError{{File: path, Problem: "reading the config: " + problem + "; --config names another file"}}}
	}
	return parseConfig(path, data, getenv, need, overrides...)
}

// CheckSyntax returns the first syntax error of JSON with comments, as a *FieldError, or nil.
func CheckSyntax(name string, data []byte) error {
	src := newSource(name, data, nil)
	src.parse()
	if len(src.errs) == 0 {
		return nil
	}
	return src.errs[0].err
}

// Override is a flag's value of agent.compaction. It replaces the file's, in every group too.
type Override struct {
	Flag string // such as --policy
	Key  string // such as policy
	Set  func(*CompactionSettings)
}

func (o Override) apply(src *source, cfg *Config) {
	c := &cfg.Agent.Compaction
	o.Set(&c.CompactionSettings)
	src.at["agent.compaction."+o.Key], src.written["agent.compaction."+o.Key] = 0, o.Flag
	for id, g := range cfg.Groups {
		if o.Key == "policy" {
			g.Policy = ""
		}
		if g.Compaction != nil {
			o.Set(g.Compaction)
			path := groupPath(id) + ".compaction." + o.Key
			src.at[path], src.written[path] = 0, o.Flag
		}
		cfg.Groups[id] = g
	}
}

func parseConfig(name string, data []byte, getenv func(string) string, need Need, overrides ...Override) (*Config, error) {
	if data == nil {
		data = []byte{}
	}
	return load(newSource(name, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), getenv), need, overrides...)
}

// load decodes, lets flags override, fills in what depends on other values, and checks at the end: a flag or a variable is judged
// like a value of the file.
func load(src *source, need Need, overrides ...Override) (*Config, error) {
	cfg := defaults(src)
	if src.data != nil {
		root, ok := src.parse()
		if !ok {
			return nil, src.err()
		}
		decodeInto(src, root, cfg)
	}
	for _, o := range overrides {
		o.apply(src, cfg)
	}
	if _, given := src.at["llm.default"]; !given && !cfg.LLM.has(cfg.LLM.Default) && len(cfg.LLM.Models) > 0 {
		cfg.LLM.Default = cfg.LLM.Models[0].Name
	}
	for i := range cfg.LLM.Models { // a shorter attempt bounds the default
		if m := &cfg.LLM.Models[i]; m.Timeout > 0 && m.FirstToken == defaultModel().FirstToken {
			m.FirstToken = min(m.FirstToken, m.Timeout)
		}
	}
	olderSummarizer(src, &cfg.Agent.Compaction, cfg.LLM)
	cfg.check(src, need)
	if err := src.err(); err != nil {
		return nil, err
	}
	return cfg, nil
}

var hujsonPlace = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)

// parse bounds the file before it is parsed, and places each syntax error. The parser would show the text of a bad string, which may
// be a secret.
func (s *source) parse() (hujson.Value, bool) {
	if len(s.data) > maxSize {
		s.failAt(0, "", "got a file of %d bytes, want a config of at most %d", len(s.data), maxSize)
		return hujson.Value{}, false
	}
	if n := InvalidUTF8(s.data); n >= 0 {
		s.failAt(n, "", "got a byte that is not UTF-8")
		return hujson.Value{}, false
	}
	if len(bytes.TrimSpace(s.data)) == 0 {
		s.failAt(0, "", "got an empty file, want an object")
		return hujson.Value{}, false
	}
	root, err := hujson.Parse(s.data)
	if err == nil {
		return root, true
	}
	problem, offset := err.Error(), 0
	if m := hujsonPlace.FindStringSubmatch(problem); m != nil {
		problem = problem[len(m[0]):]
		line, _ := strconv.Atoi(m[1])
		col, _ := strconv.Atoi(m[2])
		offset = byteOffset(s.data, line, col)
	}
	if strings.HasPrefix(problem, `invalid literal: "`) {
		problem = "invalid string: a bad escape, or a line break in it" // the parser would show it; it may be a secret
	}
	s.failAt(offset, "", "%s", problem)
	return hujson.Value{}, false
}

// InvalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func InvalidUTF8(data []byte) int {
	for n := 0; n < len(data); {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size == 1 {
			return n
		}
		n += size
	}
	return -1
}

func byteOffset(data []byte, line, col int) int {
	offset := 0
	for range line - 1 {
		n := bytes.IndexByte(data[offset:], '\n')
		if n < 0 {
			return len(data)
		}
		offset += n + 1
	}
	return min(offset+col-1, len(data))
}

// KindName is for errors, which never show the value: it may be a secret in the wrong field.
func KindName(v hujson.Value) string {
	switch v.Value.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "a list"
	default:
		panic(fmt.Sprintf("a value of JSON has no kind %q", v.Value.Kind()))
	}
}

func keyList(keys []string) string {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	return fmt.Sprint(strings.Join(sorted, ", "))
}
