package strict

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// KeyText returns a key as it stands in a path: quoted unless it is plain.
func KeyText(key string) string {
	if !plainKey.MatchString(key) {
		return strconv.Quote(key)
	}
	return key
}

// Join returns the path of a key below path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// KeyList returns keys for an error, sorted.
func KeyList(keys []string) string {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	return strings.Join(sorted, ", ")
}

// Quoted returns the allowed values for an error.
func Quoted(choices []string) string {
	all := make([]string, len(choices))
	for i, c := range choices {
		all[i] = strconv.Quote(c)
	}
	return strings.Join(all, " or ")
}

// Nearest returns the known name closest to a key: the same letters, or at most two edits in a longer name.
func Nearest(key string, names []string) string {
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
