package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

var durationType = reflect.TypeFor[time.Duration]()

// decodeInto records unknown and repeated keys, wrong types and numbers out of range, and keeps the default. It walks
// the syntax tree itself: encoding/json accepts repeated keys and keys in other letter case, and stops at the first
// wrong type.
func decodeInto(src *source, root hujson.Value, cfg *Config) {
	decode(src, "", root, reflect.ValueOf(cfg).Elem())
	decodeContextWindow(src, root, cfg)
	decodeGroupCompactions(src, root, cfg)
	decodeRobotAccess(src, root, cfg)
}

// decode walks the value and its type together and notes the place of each value, which later checks name in their errors.
func decode(src *source, path string, v hujson.Value, dst reflect.Value) {
	src.at[path] = v.StartOffset
	switch {
	case dst.Type() == durationType:
		decodeDuration(src, path, v, dst)
	case dst.Type() == paramsType:
		decodeParams(src, path, v, dst)
	case dst.Type() == robotsType:
		decodeRobots(src, path, v, dst)
	case dst.Kind() == reflect.Struct:
		decodeObject(src, path, v, dst)
	case dst.Type() == reflect.TypeFor[*CompactionSettings](), dst.Type() == reflect.TypeFor[*AccessConfig]():
		return // decoded after the settings that a group or a bot inherits
	case dst.Kind() == reflect.Map:
		decodeMap(src, path, v, dst)
	case dst.Kind() == reflect.Slice:
		decodeList(src, path, v, dst)
	case dst.Kind() == reflect.Pointer:
		if v.Value.Kind() == 'n' {
			dst.SetZero()
			return
		}
		target := reflect.New(dst.Type().Elem())
		decode(src, path, v, target.Elem())
		dst.Set(target)
	default:
		decodeScalar(src, path, v, dst)
	}
}

// decodeObject goes on after each fault, so that one run reports all of them. A key by an older name has the place and the errors of
// ours, and is shown as it was written.
func decodeObject(src *source, path string, v hujson.Value, dst reflect.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		src.fail(path, "got %s, want an object", KindName(v))
		return
	}
	fields := jsonFields(dst.Type())
	seen := map[string]member{}
	for _, m := range obj.Members {
		this := member{memberKey(m), m.Name.StartOffset}
		name := canonicalKey(dst.Type(), this.key)
		if src.twice(path, seen[name], this) {
			continue
		}
		seen[name] = this
		if this.key == contextWindowKey && dst.Type() == reflect.TypeFor[AgentConfig]() {
			continue
		}
		child := join(path, name)
		index, known := fields.index[name]
		if name != this.key {
			src.written[child] = join(path, this.key)
		}
		if why := removedReason(dst.Type(), path, name); !known && why != "" {
			src.at[child] = m.Name.StartOffset
			src.removed = append(src.removed, removedKey{child, why})
			continue
		}
		if !known {
			if near := nearest(this.key, fields.names); near != "" {
				src.failAt(m.Name.StartOffset, child, "no such key, did you mean %q?", near)
			} else {
				src.failAt(m.Name.StartOffset, child, "no such key, want one of %s", keyList(fields.names))
			}
			continue
		}
		field := dst.FieldByIndex(index)
		if m.Value.Value.Kind() == 'n' && fields.optional[name] {
			src.at[child] = m.Value.StartOffset
			field.SetZero()
			continue
		}
		decode(src, child, m.Value, field)
	}
}

func decodeMap(src *source, path string, v hujson.Value, dst reflect.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		src.fail(path, "got %s, want an object", KindName(v))
		return
	}
	out, seen := reflect.MakeMap(dst.Type()), map[string]member{}
	for _, m := range obj.Members {
		name, _ := m.Name.Value.(hujson.Literal)
		id, this := name.String(), member{memberKey(m), m.Name.StartOffset}
		if src.twice(path, seen[id], this) {
			continue
		}
		seen[id] = this
		value := reflect.New(dst.Type().Elem()).Elem()
		decode(src, join(path, this.key), m.Value, value)
		out.SetMapIndex(reflect.ValueOf(id), value)
	}
	dst.Set(out)
}

type member struct {
	key    string
	offset int
}

func memberKey(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal) // the parser accepts only strings as names
	return keyText(name.String())
}

func keyText(key string) string {
	if !plainKey.MatchString(key) {
		return strconv.Quote(key)
	}
	return key
}

func (s *source) twice(path string, first, again member) bool {
	line := s.place(first.offset, "", "").Line
	name := join(path, again.key)
	switch first.key {
	case "":
		return false
	case again.key:
		s.failAs(name, again.offset, name, "given twice, first in line %d", line)
	default:
		s.failAs(name, again.offset, name, "the same as %s, which is given in line %d, want one of the two", first.key, line)
	}
	return true
}

// decodeGroupCompactions reads groups.ID.compaction on top of agent.compaction, wherever the file has that. Faults of groups itself are
// reported already.
func decodeGroupCompactions(src *source, root hujson.Value, cfg *Config) {
	v := root.Find("/groups")
	if v == nil {
		return
	}
	obj, _ := v.Value.(*hujson.Object)
	if obj == nil {
		return
	}
	for _, m := range obj.Members {
		name, _ := m.Name.Value.(hujson.Literal)
		own := m.Value.Find("/compaction")
		group, known := cfg.Groups[name.String()]
		if own == nil || !known {
			continue
		}
		set := cfg.Agent.Compaction.CompactionSettings
		decode(src, groupPath(name.String())+".compaction", *own, reflect.ValueOf(&set).Elem())
		group.Compaction = &set
		cfg.Groups[name.String()] = group
	}
}

func decodeList(src *source, path string, v hujson.Value, dst reflect.Value) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		src.fail(path, "got %s, want a list", KindName(v))
		return
	}
	src.forget(path)
	out := reflect.MakeSlice(dst.Type(), len(list.Elements), len(list.Elements))
	for i, e := range list.Elements {
		if m, isModel := reflect.TypeAssert[*ModelConfig](out.Index(i).Addr()); isModel {
			*m = defaultModel()
			// The reference file has an explicitly empty key for endpoints without authentication.
			m.APIKey = Secret(src.expand(fmt.Sprintf("%s[%d].api_key", path, i), "${LLM_API_KEY:-}"))
			if len(list.Elements) == 1 {
				m.Name = "main"
			}
		}
		if m, isServer := reflect.TypeAssert[*MCPConfig](out.Index(i).Addr()); isServer {
			*m = defaultMCP()
		}
		decode(src, fmt.Sprintf("%s[%d]", path, i), e, out.Index(i))
	}
	dst.Set(out)
}

// decodeScalar takes a number or a switch in quotes only with a variable in it: the environment has nothing but texts. Errors never
// repeat a value that came from there.
func decodeScalar(src *source, path string, v hujson.Value, dst reflect.Value) {
	lit, _ := v.Value.(hujson.Literal)
	kind := v.Value.Kind()
	if dst.Kind() == reflect.String {
		if kind != '"' {
			src.failKind(path, KindName(v), "a string")
			return
		}
		src.checkWritten(path, lit.String(), dst.Type())
		dst.SetString(src.expand(path, lit.String()))
		return
	}
	want, ok := scalarWords[dst.Kind()]
	if !ok {
		panic(fmt.Sprintf("config field %s has a type that no file can set: %s", path, dst.Type()))
	}
	text := string(lit)
	switch quoted := kind == '"' && strings.Contains(lit.String(), "${"); {
	case quoted: // the environment holds only strings
		if text, ok = src.expandScalar(path, lit.String(), want.what); !ok {
			return
		}
	case !strings.ContainsRune(want.kinds, rune(kind)):
		src.fail(path, "got %s, want %s", KindName(v), want.what)
		return
	}
	if problem := setScalar(dst, text); problem != "" {
		if kind == '"' {
			text = "another text from the environment" // it may be a secret
		}
		src.fail(path, "got %s, want %s", text, problem)
	}
}

var scalarWords = map[reflect.Kind]struct{ kinds, what string }{
	reflect.Bool:    {"tf", "true or false"},
	reflect.Int:     {"0", "a whole number"},
	reflect.Float64: {"0", "a number"},
}

func (s *source) expandScalar(path, text, what string) (string, bool) {
	text = strings.TrimSpace(s.expand(path, text))
	if vars := s.unset[path]; len(vars) > 0 {
		s.fail(path, "is empty, want %s: set %s in the environment", what, strings.Join(vars, " and "))
	}
	return text, !s.failed(path)
}

// setScalar returns the wanted form of a text that does not fit.
func setScalar(dst reflect.Value, text string) (want string) {
	switch dst.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return scalarWords[reflect.Bool].what
		}
		dst.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.ParseInt(text, 10, 32) // larger numbers are never needed, and sums of two can't overflow
		if err != nil {
			return fmt.Sprintf("a whole number of at most %d", math.MaxInt32)
		}
		dst.SetInt(n)
	default:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return "a number that is not beyond all bounds"
		}
		dst.SetFloat(f)
	}
	return ""
}

// Go's durations have no days.
var daysForm = regexp.MustCompile(`^(\d{1,5})d$`)

func parseDuration(text string) (time.Duration, error) {
	if days := daysForm.FindStringSubmatch(text); days != nil {
		n, err := strconv.Atoi(days[1])
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// decodeDuration takes a bare number as seconds, which older bots wrote. A unit is clearer, so it is what errors ask for.
func decodeDuration(src *source, path string, v hujson.Value, dst reflect.Value) {
	const want = `want a duration such as "20s", "5m", "30d" or a number of seconds`
	lit, _ := v.Value.(hujson.Literal)
	switch v.Value.Kind() {
	case '0':
		seconds, err := strconv.ParseFloat(string(lit), 64)
		if err != nil || math.Abs(seconds) > math.MaxInt64/float64(time.Second)/2 {
			src.fail(path, "got %s, %s", lit, want)
			return
		}
		dst.SetInt(int64(seconds * float64(time.Second)))
	case '"':
		text := src.expand(path, lit.String())
		d, err := parseDuration(text)
		if err != nil {
			src.fail(path, "got %q, %s", text, want)
			return
		}
		dst.SetInt(int64(d))
	default:
		src.fail(path, "got %s, %s", KindName(v), want)
	}
}

type fieldSet struct {
	names    []string
	index    map[string][]int
	optional map[string]bool // keys that accept null
}

func jsonFields(t reflect.Type) fieldSet {
	set := fieldSet{index: map[string][]int{}, optional: map[string]bool{}}
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("json"); name != "" && name != "-" {
			set.names = append(set.names, name)
			set.index[name] = f.Index
			set.optional[name] = ownerOf(t, f) == reflect.TypeFor[PolicyRules]()
		}
	}
	return set
}

func ownerOf(t reflect.Type, f reflect.StructField) reflect.Type {
	if len(f.Index) == 1 {
		return t
	}
	return t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// nearest returns the known name closest to a key: the same letters, or at most two edits in a longer name.
func nearest(key string, names []string) string {
	letters := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	best, least := "", 3
	for _, name := range names {
		if d := distance(letters(key), letters(name)); d < least && 3*d <= len(name) {
			best, least = name, d
		}
	}
	return best
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
