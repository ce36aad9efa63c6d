package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"
)

// screen draws the scene in place on a terminal, and prints a line for each action elsewhere. It is safe for
// concurrent use.
type screen struct {
	out     io.Writer
	size    func() (columns, rows int) // nil: no terminal
	palette colorPalette
	began   time.Time

	mu    sync.Mutex
	scene scene
	drawn int // lines that the next drawing overwrites
	shape [2]int
	ended bool
}

// newShow draws only on a terminal that is large enough.
func newShow(out io.Writer, getenv func(string) string) *screen {
	s := &screen{out: out, began: time.Now(), palette: newPalette(false)}
	if o, wrapped := out.(output); wrapped {
		out = o.Writer
	}
	file, ok := out.(*os.File)
	if !ok || !isatty.IsTerminal(file.Fd()) || getenv("TERM") == "dumb" {
		return s
	}
	size := func() (int, int) {
		columns, rows, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return minColumns, minRows
		}
		return columns, rows
	}
	if columns, rows := size(); columns >= minColumns && rows >= minRows {
		s.size, s.palette = size, newPalette(getenv("NO_COLOR") == "")
	}
	return s
}

// On a terminal the story keeps the pace of a reader.
func (s *screen) isTerminal() bool { return s.size != nil }

func (s *screen) updateScene(change func(*scene)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.scene)
	s.drawLocked()
}

func (s *screen) drawScene() { s.updateScene(func(*scene) {}) }

func (s *screen) drawLocked() {
	if s.size == nil || s.ended {
		return
	}
	s.scene.Elapsed = time.Since(s.began)
	columns, rows := s.size()
	var b strings.Builder
	if shape := [2]int{columns, rows}; shape != s.shape {
		if s.shape != [2]int{} { // lines may have been wrapped: draw from the top
			b.WriteString("\x1b[2J\x1b[H")
			s.drawn = 0
		}
		s.shape = shape
	}
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	lines := renderScene(s.scene, columns, rows, s.palette)
	for _, l := range lines {
		b.WriteString("\r" + l + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	_, _ = io.WriteString(s.out, b.String()) // a closed screen ends the demo by a signal
}

func (s *screen) printLocked(indent, text string) {
	if s.size == nil && !s.ended {
		fmt.Fprintf(s.out, "%5.1fs  %s%s\n", time.Since(s.began).Seconds(), indent, fitWidth(oneLine(text), 150))
	}
}

func (s *screen) printIntro() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size == nil {
		fmt.Fprintf(s.out, "Ebb demo\n%s\n%s\n", honestChinese, honestEnglish)
	}
	s.drawLocked()
}

func (s *screen) showCaption(text string) {
	s.updateScene(func(c *scene) {
		c.Caption = text
		s.printLocked("", "== "+text)
	})
}

func (s *screen) showMessage(who, text string, bot bool) {
	s.updateScene(func(c *scene) {
		c.Said = append(c.Said, spokenLine{Who: who, Text: text, Bot: bot})
		s.printLocked("", who+": "+text)
	})
}

// Without a terminal, a card's first and last texts are printed.
func (s *screen) showCard(id, text string, done bool) {
	s.updateScene(func(c *scene) {
		i := c.lineOfCard(id)
		if i < 0 {
			i = len(c.Said)
			c.Said = append(c.Said, spokenLine{Who: demoBotName, Bot: true, Card: id, Open: true})
		}
		line := &c.Said[i]
		if !line.Open {
			return // an older frame
		}
		line.Text, line.Open = text, !done
		if line.Open {
			text += cursor
		}
		s.printLocked("", line.Who+": "+text)
	})
}

func (s *screen) markCard(id, mark string) {
	s.updateScene(func(c *scene) {
		if i := c.lineOfCard(id); i >= 0 {
			c.Said[i].Mark = mark
		}
	})
}

func (s *screen) showAction(text string, details ...string) {
	s.updateScene(func(c *scene) {
		c.Happened = append(c.Happened, sceneAction{Text: text, Details: details})
		s.printLocked("", "● "+text)
		for _, d := range details {
			s.printLocked("     ", d)
		}
	})
}

func (s *screen) showContext(tokens int) {
	s.updateScene(func(c *scene) {
		c.Tokens = tokens
		s.printLocked("     ", fmt.Sprintf("[上下文 context %s / %s tokens, %d%%]", withCommas(tokens), withCommas(c.Threshold), tokens*100/max(1, c.Threshold)))
	})
}

func (s *screen) showReplica(name string, pid int, state string, alive bool) {
	s.updateScene(func(c *scene) {
		now := replicaState{Name: name, PID: pid, State: state, Alive: alive}
		for i := range c.Replicas {
			if c.Replicas[i].Name == name {
				c.Replicas[i] = now
				return
			}
		}
		c.Replicas = append(c.Replicas, now)
	})
}

func (s *screen) printEnd(table []tableRow, result string) {
	s.updateScene(func(c *scene) { c.Table, c.Result, c.Caption = table, result, "结束 the end" })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size == nil {
		for _, r := range table {
			fmt.Fprintln(s.out, drawRow(r, s.palette))
		}
		fmt.Fprintln(s.out, result)
	}
	s.ended = true
}

// Later output stays below the drawing.
func (s *screen) stopDrawing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}
