package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The language rule of CONTRIBUTING.md, as far as a program can check it.

// maxSentence is the number of words in a sentence of a comment, log message, error or help text. The aim is 20.
const maxSentence = 30

// dialect maps phrases that this code used to have to their plain words.
var dialect = map[string]string{
	"told": "reported, stored, summarized", "tell": "report, summarize", "tells": "reports, summarizes",
	"nobody": "no member, no caller", "somebody": "a person, a caller", "whoever": "a noun", "so many": "the number",
	"anew": "again", "at rest": "idle", "in hand": "in progress", "put down": "stored, released", "company": "organization",
	"come through": "succeed", "comes through": "succeeds", "came of": "resulted from", "comes of": "results from",
	"for want of": "without", "whence": "from which", "as ever": "unchanged", "beside it": "next to it",
	"for good": "permanently", "of others": "a noun", "of theirs": "a noun", "what is": "a noun",
}

// openers are first words that leave a sentence without a noun as its subject.
var openers = []string{"What", "Who", "Where", "Whatever", "Whoever", "Else", "Of", "Nor", "None", "Nobody"}

// trailingOpeners are first words of comments behind code.
var trailingOpeners = []string{"of", "what", "who", "whose", "where", "whatever", "whoever", "else", "nor", "none", "nobody"}

// nameWords are parts of identifiers and file names that have a plain word.
var nameWords = map[string]string{
	"told": "reported, notified", "tell": "report, summarize", "tells": "reports", "nobody": "none", "somebody": "member",
	"whoever": "caller", "anew": "again", "heart": "heartbeat", "tenure": "term", "parcel": "batch", "verdict": "result",
	"tally": "count", "crowd": "group", "crowded": "backpressured", "pile": "group", "trouble": "fault", "doubt": "invalidate",
	"chore": "job", "chores": "jobs", "whence": "source",
}

// languageTable has the findings that each package may still have. A package without a line may have none.
const languageTable = "testdata/language.txt"

// finding is one breach of the language rule.
type finding struct {
	pkg, kind, place, text string
}

// findingKinds are the columns of the table.
var findingKinds = []string{"dialect", "opener", "long", "name"}

// TestLanguage fails where a package has more findings than its line in the table allows.
// "go test ./cmd/bot -run TestLanguage -update" writes the table, unless the sum of a column would grow.
func TestLanguage(t *testing.T) {
	t.Parallel()
	findings := allFindings(t)
	found := countFindings(findings)
	allowed := readLanguageTable(t)
	if *update {
		writeLanguageTable(t, allowed, found)
		return
	}
	for _, problem := range languageProblems(findings, found, allowed) {
		t.Error(problem)
	}
}

// The numbers of the table fall with the findings. This is a test of its own, so that packages can be reworded side by side.
func TestTableOfLanguageIsTight(t *testing.T) {
	t.Parallel()
	for _, problem := range staleAllowances(countFindings(allFindings(t)), readLanguageTable(t)) {
		t.Error(problem)
	}
}

// allFindings are those of code, scenarios and documentation.
func allFindings(t *testing.T) []finding {
	t.Helper()
	findings := slices.Concat(languageFindings(moduleFiles(t)), scenarioFindings(t))
	pages := docPages(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		findings = append(findings, pageFindings(pages[name])...)
	}
	return findings
}

// countFindings counts by "package kind".
func countFindings(findings []finding) map[string]int {
	found := map[string]int{}
	for _, f := range findings {
		found[f.pkg+" "+f.kind]++
	}
	return found
}

// languageProblems lists the findings of packages that have more of a kind than the table allows.
func languageProblems(findings []finding, found, allowed map[string]int) []string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if found[key] <= allowed[key] {
			continue
		}
		problems = append(problems, fmt.Sprintf("%s: %d findings, at most %d allowed:", key, found[key], allowed[key]))
		for _, f := range findings {
			if f.pkg+" "+f.kind == key {
				problems = append(problems, f.place+": "+f.text)
			}
		}
	}
	return problems
}

// staleAllowances lists the numbers of the table that could be lower.
func staleAllowances(found, allowed map[string]int) []string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		if found[key] < allowed[key] {
			problems = append(problems, fmt.Sprintf("%s: %d findings, and %s allows %d: run go test ./cmd/bot -run TestLanguage -update",
				key, found[key], languageTable, allowed[key]))
		}
	}
	return problems
}

func readLanguageTable(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(languageTable)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 1+len(findingKinds) {
			t.Fatalf("%s: cannot read the line %q", languageTable, line)
		}
		for i, kind := range findingKinds {
			n, err := strconv.Atoi(fields[i+1])
			if err != nil {
				t.Fatalf("%s: %v", languageTable, err)
			}
			if n > 0 {
				allowed[fields[0]+" "+kind] = n
			}
		}
	}
	return allowed
}

func writeLanguageTable(t *testing.T, allowed, found map[string]int) {
	t.Helper()
	for _, kind := range findingKinds {
		before, now := sumOfKind(allowed, kind), sumOfKind(found, kind)
		if len(allowed) > 0 && now > before {
			t.Fatalf("%d findings of the kind %s, and the table allows %d in all: reword the new ones", now, kind, before)
		}
	}
	packages := map[string]bool{}
	for key := range found {
		packages[strings.Fields(key)[0]] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Findings of TestLanguage that remain, by package; the numbers may only fall.\n%-36s", "#")
	for _, kind := range findingKinds {
		fmt.Fprintf(&b, "%9s", kind)
	}
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		fmt.Fprintf(&b, "\n%-36s", pkg)
		for _, kind := range findingKinds {
			fmt.Fprintf(&b, "%9d", found[pkg+" "+kind])
		}
	}
	if err := os.WriteFile(languageTable, []byte(b.String()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func sumOfKind(counts map[string]int, kind string) (sum int) {
	for key, n := range counts {
		if strings.HasSuffix(key, " "+kind) {
			sum += n
		}
	}
	return sum
}
