package manage

import (
	"context"
	"errors"
	"testing"

	"ebb/memory"
	"ebb/sessions"
)

// cabinet has one kept file of a group, with the number 1. Zhang sent it, and Li kept it.
type cabinet struct {
	key    sessions.Key
	kept   []sessions.FileRights // rights with which versions were stored
	lease  sessions.Lease
	forgot []int64
}

func (c *cabinet) file() sessions.KeptFile {
	return sessions.KeptFile{ID: 1, Key: c.key, Name: "a.docx", SentBy: "zhang", KeptBy: "li"}
}

func (c *cabinet) KeepFile(_ context.Context, l sessions.Lease, _ sessions.KeptFile, may sessions.FileRights) (sessions.Keeping, error) {
	if !may.Allow(c.file()) {
		return sessions.Keeping{KeptFile: c.file()}, sessions.ErrOthersFile
	}
	c.kept, c.lease = append(c.kept, may), l
	return sessions.Keeping{KeptFile: c.file(), Replaced: true}, nil
}

func (c *cabinet) ForgetFile(_ context.Context, _ sessions.Key, id int64) error {
	c.forgot = append(c.forgot, id)
	return nil
}

// A kept file is replaced and deleted by its sender, by its keeper, by an administrator of its group, and by the person of its private chat. An
// operator deletes it. The audit has the actions on other people's.
func TestRightsOverKeptFiles(t *testing.T) {
	t.Parallel()
	const group, other, private = sessions.Key("r/g"), sessions.Key("r/h"), sessions.Key("r/p")
	by := func(role Role, person sessions.UserID, key sessions.Key) Actor {
		return Actor{Role: role, Person: person, Name: "ops", Reader: memory.Reader{Key: key, Private: key == private}, Asking: memory.Asking{Lease: sessions.Lease{Key: key, Term: 7}}}
	}
	operator := by(Operator, "", "")
	for name, c := range map[string]struct {
		by       Actor
		file     sessions.Key
		other    sessions.UserID
		keeps    error
		forgets  error
		recorded bool
	}{
		"sender":                     {by: by(Member, "zhang", group), file: group},
		"keeper":                     {by: by(Member, "li", group), file: group},
		"keeper by the second id":    {by: by(Member, "", group), file: group, other: "li"},
		"another member":             {by: by(Member, "mallory", group), file: group, keeps: sessions.ErrOthersFile, forgets: NotTheirs},
		"person without an id":       {by: by(Member, "", group), file: group, keeps: sessions.ErrOthersFile, forgets: NotTheirs},
		"administrator":              {by: by(GroupAdmin, "wang", group), file: group, recorded: true},
		"administrator, own":         {by: by(GroupAdmin, "li", group), file: group},
		"installation's":             {by: by(Admin, "wang", group), file: group, recorded: true},
		"keeper from another group":  {by: by(Member, "li", other), file: group, keeps: NoTurn, forgets: NotTheirs},
		"administrator of another":   {by: by(GroupAdmin, "wang", other), file: group, keeps: NoTurn, forgets: NotTheirs},
		"keeper in a private chat":   {by: by(Member, "li", private), file: group, keeps: NoTurn, forgets: NotTheirs},
		"person of the private chat": {by: by(Member, "wang", private), file: private},
		"operator, who has no turn":  {by: operator, file: group, keeps: NoTurn, recorded: true},
		"lease of another session":   {by: Actor{Person: "li", Reader: memory.Reader{Key: group}, Asking: memory.Asking{Lease: sessions.Lease{Key: other}}}, file: group, keeps: NoTurn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, audit := &cabinet{key: c.file}, &actions{}
			m := New(Config{Files: files, Audit: audit})
			kept, err := m.KeepFile(t.Context(), c.by, sessions.KeptFile{Key: c.file, Name: "a.docx"}, c.other)
			if !errors.Is(err, c.keeps) || (err == nil) != (len(files.kept) == 1) || err == nil && (!kept.Replaced || files.lease != c.by.Asking.Lease) {
				t.Errorf("keeping: %+v, %v, want %v; stored %v", kept, err, c.keeps, files.kept)
			}
			if err := m.ForgetFile(t.Context(), c.by, files.file(), c.other); !errors.Is(err, c.forgets) || (err == nil) != (len(files.forgot) == 1) {
				t.Errorf("forgetting: %v, want %v", err, c.forgets)
			}
			var want []string
			if c.recorded && c.keeps == nil {
				want = append(want, ReplacedFile)
			}
			if c.recorded {
				want = append(want, ForgotFile)
			}
			var got []string
			for _, a := range audit.rows {
				got = append(got, a.Action)
				if a.Detail != "file 1" || a.Key != c.file || a.Outcome != outcomeDone {
					t.Errorf("in the audit: %+v", a)
				}
			}
			if len(got) != len(want) || len(want) > 0 && got[0] != want[0] || len(want) > 1 && got[1] != want[1] {
				t.Errorf("in the audit: %v, want %v", got, want)
			}
		})
	}
}
