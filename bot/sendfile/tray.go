package sendfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/turn/persist"
	"ebb/sessions"
)

// Most bounds the files of a reply. Each costs two calls of the month.
const Most = 4

// The reasons why a turn sends no further file, for the model.
var (
	ErrOff   = errors.New("this chat takes no files")
	ErrMany  = fmt.Errorf("a reply has at most %d files", Most)
	ErrCalls = errors.New("the chat platform's API calls of this month are nearly used up")
)

// Store keeps files from their making until they are sent. See package media of sql.
type Store interface {
	// Keep stores a file of the turn that begins with a message, in place of the one of the same source, and returns its id.
	Keep(ctx context.Context, l sessions.Lease, event int64, f sessions.File) (int64, error)
	// Kept lists the files of turns that have not committed, without their bytes.
	Kept(ctx context.Context, key sessions.Key, events []int64) ([]sessions.File, error)
}

// Desk opens trays.
type Desk struct {
	Store   Store
	Timeout time.Duration                        // bounds one statement
	Refusal func(robot sessions.RobotCode) error // why a robot sends no file now; nil: it does
}

// Tray has the files of one reply. It is not for concurrent use.
type Tray struct {
	desk  Desk
	robot sessions.RobotCode
	files []sessions.File // one that is not stored yet has its bytes
}

// Tray opens the tray of a turn.
func (d Desk) Tray(key sessions.Key) *Tray {
	robot, _ := key.Conversation()
	return &Tray{desk: d, robot: robot}
}

// Recall opens the tray of a turn with the files of calls that earlier attempts at it made. These calls are not repeated. runs are these calls.
func (d Desk) Recall(ctx context.Context, key sessions.Key, runs []sessions.ToolRun) (*Tray, error) {
	t := d.Tray(key)
	if len(runs) == 0 {
		return t, nil
	}
	events := make([]int64, len(runs))
	for i, r := range runs {
		events[i] = r.EventID
	}
	slices.Sort(events)
	one, stop := context.WithTimeout(ctx, d.Timeout)
	defer stop()
	kept, err := d.Store.Kept(one, key, slices.Compact(events))
	if err != nil {
		return t, fmt.Errorf("read files of earlier calls: %w", err)
	}
	t.files = slices.DeleteFunc(kept, func(f sessions.File) bool { return !strings.HasPrefix(f.Source, callSource) })
	return t, nil
}

// callSource begins the source of a file that a call of a tool made.
const callSource = "call "

// CallSource is the source of the file with a number among those of a call.
func CallSource(call string, n int) string { return fmt.Sprintf("%s%s %d", callSource, call, n) }

// Files are the stored files, without their bytes.
func (t *Tray) Files() []sessions.File {
	return slices.DeleteFunc(slices.Clone(t.files), func(f sessions.File) bool { return f.Body != nil })
}

// Room returns the reason why the tray takes no further file; nil: it takes one.
func (t *Tray) Room() error {
	if len(t.files) >= Most {
		return ErrMany
	}
	return t.desk.Refusal(t.robot)
}

// Add takes a file with a source, a name and its bytes, and returns it as people get it. The error says why there is none, for the model.
func (t *Tray) Add(f sessions.File) (sessions.File, error) {
	if err := t.Room(); err != nil {
		return f, err
	}
	judged, err := judge(f.Name, f.Body)
	if err != nil {
		return f, err
	}
	f.Name, f.Kind = judged.Name, judged.Kind
	t.files = append(t.files, f)
	return f, nil
}

// Store stores the added files of the turn that begins with a message. It waits while the storage is unavailable. A file that the storage
// refuses is left out, with the error of the last one. Any other error ends the turn.
func (t *Tray) Store(ctx context.Context, l sessions.Lease, event int64) (refused error) {
	for i := range t.files {
		f := &t.files[i]
		if f.Body == nil {
			continue
		}
		err := persist.Write(ctx, t.desk.Timeout, "File not stored, trying again", func(one context.Context) (err error) {
			f.ID, err = t.desk.Store.Keep(one, l, event, *f)
			return err
		})
		if err == nil {
			f.Body = nil
			continue
		}
		if !errors.Is(err, sessions.ErrRefused) {
			return fmt.Errorf("store the file %s: %w", f.Source, err)
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("File not stored: it is left out of the reply")
		refused = err
	}
	t.files = t.Files()
	return refused
}

// Send adds a file and stores it. An error leaves the tray without the file.
func (t *Tray) Send(ctx context.Context, l sessions.Lease, event int64, f sessions.File) (sessions.File, error) {
	added, err := t.Add(f)
	if err != nil {
		return f, err
	}
	if err := t.Store(ctx, l, event); err != nil {
		t.files = t.Files()
		return f, err
	}
	added.Body = nil
	return added, nil
}
