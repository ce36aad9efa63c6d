package command

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/schedule"
	"ebb/bot/sendfile"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/memory/show"
)

// exportPageBytes is the size of a few DingTalk messages.
const exportPageBytes = 36_000

// exportCommand is /export.
type exportCommand struct {
	manage   *manage.Manager
	roles    roles
	views    *view.Builder
	table    Table
	location *time.Location
}

func exportOf(e *env) exportCommand {
	return exportCommand{e.manage, e.roles(), e.views, e.table, e.shared.Location}
}

// page answers in the private chat alone, since it has what the person said anywhere: with a file, or with the page that was asked for. A page
// behind the last is refused by its number.
func (x exportCommand) page(ctx context.Context, t *view.CommandTurn, c Call) string {
	page, ok := pageOf(c.Arg)
	if !ok {
		return c.Command.usage(t.Lang)
	}
	a := x.roles.actor(t)
	if a.Person == "" {
		return wording.Say(wording.NoRights, t.Lang)
	}
	if !a.Reader.Private {
		return wording.Say(wording.ExportPrivate, t.Lang)
	}
	if c.Arg == "" {
		if text, ok := x.file(ctx, t, a); ok {
			return text
		}
	}
	p := &exportPager{want: page}
	err := x.read(ctx, a, t.Lang, p.add)
	switch {
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Export of a person's data failed")
		return wording.Say(wording.NoRights, t.Lang)
	case p.page == 0:
		return wording.Say(wording.ExportEmpty, t.Lang)
	case page > p.page:
		return wording.Say(wording.NoPage, t.Lang, page)
	case p.page > 1:
		p.out.WriteString(wording.Say(wording.ExportPage, t.Lang, page, p.page))
		if page < p.page {
			p.out.WriteString(wording.Say(wording.ExportNext, t.Lang, page+1))
		}
	}
	return p.out.String()
}

// file sends a workbook with a sheet for each heading. It reports false where there is none.
func (x exportCommand) file(ctx context.Context, t *view.CommandTurn, a manage.Actor) (text string, ok bool) {
	var sheets []sendfile.Sheet
	rows := 0
	err := x.read(ctx, a, t.Lang, func(head, line string) {
		head = strings.TrimPrefix(head, "## ")
		if n := len(sheets); n == 0 || sheets[n-1].Name != head {
			sheets = append(sheets, sendfile.Sheet{Name: head})
		}
		at := &sheets[len(sheets)-1]
		at.Rows = append(at.Rows, strings.SplitN(strings.TrimSuffix(strings.TrimPrefix(line, "- "), "\n"), " · ", 3))
		rows++
	})
	if err != nil || rows == 0 {
		return "", false // as the pages say
	}
	body, err := sendfile.Book(sheets)
	var name string
	if err == nil {
		name, err = t.Send(wording.Say(wording.ExportName, t.Lang)+".xlsx", body)
	}
	if err != nil {
		zerolog.Ctx(ctx).Info().Err(err).Msg("Export of a person's data is no file, and comes as text")
		return "", false
	}
	return wording.Say(wording.ExportFile, t.Lang, rows, name), true
}

// read reads all data, each line with its heading.
func (x exportCommand) read(ctx context.Context, a manage.Actor, lang string, add func(head, line string)) error {
	heads := show.ExportHeads(lang)
	return x.manage.Export(ctx, a, a.Person, manage.Reader{
		Fact: func(m memory.Memory) error {
			add(heads.Facts, show.ExportFact(m, x.location, lang))
			return nil
		},
		Message: func(s memory.PersonMessage) error {
			if !isCommand(x.table, x.views, s.Event) {
				add(heads.Messages, show.ExportSaid(s, x.location, lang))
			}
			return nil
		},
		Record: func(r memory.Record) error {
			r.Spec = schedule.StoredTimes(r.Spec, lang)
			add(heads.Records, show.ExportRecord(r, x.location, lang))
			return nil
		},
	})
}

type exportPager struct {
	want int
	page int // current page; 0 before the first
	size int // bytes of the current page
	head string
	out  strings.Builder // the wanted page
}

func (p *exportPager) add(head, line string) {
	for line != "" {
		if p.page == 0 || p.size > 0 && p.size+min(len(line), exportPageBytes) > exportPageBytes {
			p.page, p.size, p.head = p.page+1, 0, ""
		}
		if head != p.head {
			p.write("\n" + head + "\n\n")
			p.head = head
		}
		n := min(len(line), exportPageBytes)
		for n < len(line) && !utf8.RuneStart(line[n]) {
			n--
		}
		p.write(line[:n])
		line = line[n:]
		p.size += n
	}
}

func (p *exportPager) write(text string) {
	if p.page == p.want {
		p.out.WriteString(text)
	}
}
