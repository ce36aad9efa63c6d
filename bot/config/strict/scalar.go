package strict

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

// DurationType is that of fields with a duration, which a file writes as text.
var DurationType = reflect.TypeFor[time.Duration]()

// decodeScalar takes a number or a switch in quotes only with a variable in it: the environment has nothing but texts. Errors never
// repeat a value that came from there.
func decodeScalar(s *Source, path string, v hujson.Value, dst reflect.Value) {
	lit, _ := v.Value.(hujson.Literal)
	kind := v.Value.Kind()
	if dst.Kind() == reflect.String {
		if kind != '"' {
			s.FailKind(path, KindName(v), "a string")
			return
		}
		if problem := s.rules.Refuse(path, lit.String(), dst.Type()); problem != "" {
			s.Fail(path, "%s", problem)
		}
		dst.SetString(s.Expand(path, lit.String()))
		return
	}
	want, ok := scalarWords[dst.Kind()]
	if !ok {
		panic(fmt.Sprintf("config field %s has a type that no file can set: %s", path, dst.Type()))
	}
	text := string(lit)
	switch quoted := kind == '"' && strings.Contains(lit.String(), "${"); {
	case quoted: // the environment holds only strings
		if text, ok = expandScalar(s, path, lit.String(), want.what); !ok {
			return
		}
	case !strings.ContainsRune(want.kinds, rune(kind)):
		s.Fail(path, "got %s, want %s", KindName(v), want.what)
		return
	}
	if problem := setScalar(dst, text); problem != "" {
		if kind == '"' {
			text = "another text from the environment" // it may be a secret
		}
		s.Fail(path, "got %s, want %s", text, problem)
	}
}

var scalarWords = map[reflect.Kind]struct{ kinds, what string }{
	reflect.Bool:    {"tf", "true or false"},
	reflect.Int:     {"0", "a whole number"},
	reflect.Float64: {"0", "a number"},
}

func expandScalar(s *Source, path, text, what string) (string, bool) {
	text = strings.TrimSpace(s.Expand(path, text))
	if vars := s.unset[path]; len(vars) > 0 {
		s.Fail(path, "is empty, want %s: set %s in the environment", what, strings.Join(vars, " and "))
	}
	return text, !s.Failed(path)
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
func decodeDuration(s *Source, path string, v hujson.Value, dst reflect.Value) {
	const want = `want a duration such as "20s", "5m", "30d" or a number of seconds`
	lit, _ := v.Value.(hujson.Literal)
	switch v.Value.Kind() {
	case '0':
		seconds, err := strconv.ParseFloat(string(lit), 64)
		if err != nil || math.Abs(seconds) > math.MaxInt64/float64(time.Second)/2 {
			s.Fail(path, "got %s, %s", lit, want)
			return
		}
		dst.SetInt(int64(seconds * float64(time.Second)))
	case '"':
		text := s.Expand(path, lit.String())
		d, err := parseDuration(text)
		if err != nil {
			s.Fail(path, "got %q, %s", text, want)
			return
		}
		dst.SetInt(int64(d))
	default:
		s.Fail(path, "got %s, %s", KindName(v), want)
	}
}

// DurationText returns a duration as a file has it, without zero minutes and seconds.
func DurationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
