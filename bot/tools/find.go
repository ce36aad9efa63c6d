package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"ebb/bot/chat"
	"ebb/memory"
	"ebb/memory/text"
	"ebb/sessions/llm"
)

const (
	// maxFound is the number of tools that a search finds.
	maxFound = 5
	// maxFoundBytes bounds the schemas in a result. Requests offer the tools with their schemas besides.
	maxFoundBytes = 8 << 10
	// maxNamesBytes bounds the names of other tools in a result.
	maxNamesBytes = 2000
	// maxAbout bounds the description of a tool in a result, in bytes.
	maxAbout = 300
)

// The weights of a word in a search by the place where a tool has it.
const (
	nameWeight = 3
	termWeight = 1
)

type findArgs struct {
	Query string `json:"query"`
}

// Finder returns the tool that finds others, which requests do not offer by themselves. They are sorted by name.
func Finder(others []llm.ToolSpec) chat.Tool {
	servers := map[string]bool{}
	for _, s := range others {
		servers[chat.ServerOf(s.Name)] = true
	}
	return tool[findArgs]{
		spec: llm.ToolSpec{
			Name: chat.SearchTool,
			Description: fmt.Sprintf("Find further tools by words; then call them. There are %d more, of: %s.",
				len(others), strings.Join(slices.Sorted(maps.Keys(servers)), ", ")),
			Schema: object([]string{"query"}, map[string]any{"query": field("string", "purpose or name of a tool")}),
		},
		call: (&finder{others: others}).call, reads: true,
	}
}

type finder struct {
	others []llm.ToolSpec
}

func (f *finder) call(_ context.Context, in chat.ToolInput, a findArgs) (string, error) {
	if strings.TrimSpace(a.Query) == "" {
		return "", errors.New("query is empty: give the purpose or the name of a tool")
	}
	found := f.search(a.Query)
	if len(found) == 0 {
		return fmt.Sprintf("No tool fits %q. Search for words of these names, or say that there is no tool for it.%s", memory.HeadOf(a.Query), namesOf(f.others)), nil
	}
	best, rest := found[:min(maxFound, len(found))], found[min(maxFound, len(found)):]
	room := maxFoundBytes
	if in.Room > 0 {
		room = min(room, in.Room/2)
	}
	var b strings.Builder
	b.WriteString("These tools can be called now:\n")
	for _, s := range best {
		b.WriteString(chat.FoundLine(s.Name) + aboutOf(s) + "\n")
	}
	for _, s := range best {
		if schema, err := json.Marshal(s.Schema); err == nil && len(schema) <= room {
			room -= len(schema)
			fmt.Fprintf(&b, "%s takes %s\n", s.Name, schema)
		}
	}
	if len(rest) > 0 {
		b.WriteString("Less fitting ones, to search for:" + namesOf(rest))
	}
	return b.String(), nil
}

// search returns the tools with words of the query, the best first. Rare words count more.
func (f *finder) search(query string) []llm.ToolSpec {
	names, terms := make([]map[string]bool, len(f.others)), make([]map[string]bool, len(f.others))
	count := map[string]int{}
	for i, s := range f.others {
		names[i], terms[i] = termsOf(s.Name), termsOf(s.Description+" "+fieldsOf(s.Schema))
		for t := range union(names[i], terms[i]) {
			count[t]++
		}
	}
	wanted := slices.Sorted(maps.Keys(termsOf(query))) // sums of another order could differ
	exact := strings.FieldsFunc(query, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;，；、\"'`", r) })
	score := map[string]float64{}
	for i, s := range f.others {
		for _, t := range wanted {
			weight := math.Log(1 + float64(len(f.others))/float64(max(1, count[t])))
			switch {
			case names[i][t]:
				score[s.Name] += nameWeight * weight
			case terms[i][t]:
				score[s.Name] += termWeight * weight
			}
		}
		if slices.Contains(exact, s.Name) {
			score[s.Name] = math.Inf(1)
		}
	}
	found := slices.DeleteFunc(slices.Clone(f.others), func(s llm.ToolSpec) bool { return score[s.Name] == 0 })
	slices.SortStableFunc(found, func(x, y llm.ToolSpec) int { return cmp.Compare(score[y.Name], score[x.Name]) })
	return found
}

// termsOf are the words of a text, those of joined names too: list_files, listFiles.
func termsOf(s string) map[string]bool {
	var b strings.Builder
	lower := false
	for _, r := range s {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		if lower = unicode.IsLower(r); !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return text.Terms(text.Tokenize(b.String()))
}

// fieldsOf are the names and descriptions of the arguments.
func fieldsOf(schema map[string]any) string {
	var b strings.Builder
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		b.WriteString(name + " ")
		if p, ok := properties[name].(map[string]any); ok {
			about, _ := p["description"].(string)
			b.WriteString(about + " ")
		}
	}
	return b.String()
}

// aboutOf is the description in one line.
func aboutOf(s llm.ToolSpec) string {
	about := strings.Join(strings.Fields(s.Description), " ")
	if len(about) > maxAbout {
		about = strings.ToValidUTF8(about[:maxAbout], "") + "…"
	}
	return about
}

func union(x, y map[string]bool) map[string]bool {
	all := maps.Clone(x)
	maps.Copy(all, y)
	return all
}

// namesOf lists names, a line each.
func namesOf(specs []llm.ToolSpec) string {
	var b strings.Builder
	for i, s := range specs {
		if b.Len()+len(s.Name) > maxNamesBytes {
			fmt.Fprintf(&b, "\nand %d more", len(specs)-i)
			break
		}
		b.WriteString("\n" + s.Name)
	}
	return b.String()
}
