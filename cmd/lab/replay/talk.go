package replay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// recordedTalk alternates a person's messages and an assistant's, the person's first.
type recordedTalk struct {
	name string
	said []talkMessage
}

type talkMessage struct {
	text string
	at   time.Time
	mark string // planted identifier; empty for most
}

func (s talkMessage) tokenCount() int { return blockTokens(s.text) }

const (
	DataVariable = "EBB_LOCOMO"
	locomoFile   = "locomo.docs.jsonl"
)

const markEvery = 20

// LoCoMo's dialogues may be anywhere below the folder. Their two speakers become the person and the assistant.
func readTalks(folder string) ([]recordedTalk, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == locomoFile {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for dialogues: %w", err)
	}
	var talks []recordedTalk
	for _, path := range files {
		more, err := readTalkFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading dialogues from %s: %w", path, err)
		}
		talks = append(talks, more...)
	}
	if len(talks) == 0 {
		return nil, fmt.Errorf("looking for dialogues: there is no %s with any below %s", locomoFile, folder)
	}
	for i := range talks {
		talks[i].plantMarks(i)
	}
	return talks, nil
}

func readTalkFile(path string) (talks []recordedTalk, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var doc struct {
			Conv, TS, Text string
		}
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		at, err := time.Parse("2006-01-02T15:04:05", doc.TS)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(talks) == 0 || talks[len(talks)-1].name != doc.Conv {
			talks = append(talks, recordedTalk{name: doc.Conv})
		}
		t := &talks[len(talks)-1]
		t.said = append(t.said, talkMessage{text: doc.Text, at: at})
	}
	return talks, lines.Err()
}

// plantMarks puts an identifier in every markEvery-th message. It drops a last message without a reply; a reply gets
// its question's time.
func (t *recordedTalk) plantMarks(number int) {
	t.said = t.said[:len(t.said)/2*2]
	for i := 1; i < len(t.said); i += 2 {
		t.said[i].at = t.said[i-1].at
	}
	for i := markEvery / 2; i < len(t.said); i += markEvery {
		t.said[i].mark = fmt.Sprintf("EBB-%d", 10_000*(number+1)+i)
		t.said[i].text += " (" + t.said[i].mark + ")"
	}
}

func (t recordedTalk) gapBefore(i int) time.Duration {
	if i == 0 {
		return 0
	}
	return t.said[i].at.Sub(t.said[i-1].at)
}

const (
	synthTalks    = 5
	synthMessages = 590
	synthShortest = 12 // messages of a sitting; days lie between sittings
	synthLongest  = 32
)

// Talks of LoCoMo's shape have as many messages of about the same length, in as many sittings. They are the same on
// every machine.
func synthesizeTalks(talks int) []recordedTalk {
	out := make([]recordedTalk, talks)
	for i := range out {
		r := rand.New(rand.NewPCG(2026, uint64(i)))
		at := time.Date(2026, 3, 1+i, 9, 0, 0, 0, time.UTC)
		out[i].name = fmt.Sprintf("synthetic-%d", i+1)
		sitting := 0 // messages left of it
		for n := range synthMessages {
			if sitting == 0 {
				sitting = (synthShortest + r.IntN(synthLongest-synthShortest+1)) / 2 * 2 // every question has an answer
				if n > 0 {
					at = at.Add(time.Duration(24+r.IntN(200)) * time.Hour)
				}
			}
			sitting--
			at = at.Add(time.Duration(20+r.IntN(40)) * time.Second)
			out[i].said = append(out[i].said, talkMessage{text: synthText(r), at: at})
		}
		out[i].plantMarks(i)
	}
	return out
}

// No phrase is frequent.
var synthWords = [][]string{
	strings.Fields("We They Maria John Somebody Nobody Everybody Sam Evan Tim Caroline James"),
	strings.Fields("finally maybe really already hardly often gladly quietly once never nearly still"),
	strings.Fields("painted visited mentioned finished borrowed planted repaired recorded described enjoyed practised cooked missed opened collected measured"),
	strings.Fields("the a that another every some this our"),
	strings.Fields("small bright wooden quiet old famous broken green long second unusual warm heavy early"),
	strings.Fields("garden bicycle kitchen concert letter mountain camera recipe novel lake ticket puppy guitar market lesson window"),
	strings.Fields("near behind before after with without around beside during for"),
	strings.Fields("Monday school winter dinner work breakfast summer college rain lunch practice"),
	strings.Fields("because so although and while but since unless"),
	strings.Fields("neighbours friends teachers cousins colleagues visitors children musicians drivers doctors"),
	strings.Fields("laughed waited disagreed helped called stayed left returned argued listened cheered cried"),
}

func synthText(r *rand.Rand) string {
	var b strings.Builder
	for length := 35 + r.IntN(140); b.Len() < length; {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		for i, words := range synthWords {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(words[r.IntN(len(words))])
			if i == 7 && r.IntN(3) == 0 {
				break
			}
		}
		b.WriteByte('.')
	}
	return b.String()
}
