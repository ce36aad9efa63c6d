package reload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"ebb/bot/access"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Own resolves a conversation's own settings, a JSON object of keys of agent.compaction, on top of the file's. The
// error names each invalid key with the expected value, and may be shown to members.
type Own func(id sessions.ConversationID, settings string) (compaction.Settings, error)

// Values are the settings that a reload replaces as a whole. They are never changed in place.
type Values struct {
	Admins []sessions.UserID
	Access *access.Rules // nil: everyone is served
	// CommandRights are "anyone", "owner" or "admin" by the command's English name.
	CommandRights map[string]string
	Limits        sessions.Limits
	Withheld      []string // names of tools that requests don't offer

	Model        llm.Model
	Models       []llm.ModelChoice // that a conversation may choose, the default first; nil: none
	SummaryModel string            // empty: the default model
	Currency     string            // in which models have prices; empty: unknown

	Compaction  compaction.Settings
	Compactions map[sessions.ConversationID]compaction.Settings
	Own         Own // nil: conversations have no settings of their own
	Groups      map[sessions.ConversationID]Group

	Name   string // the robot's own; empty: that of the process
	Common Group  // for the conversations of the robot; an empty field keeps the value of the process
	// Robots are the values of robots that differ from these; theirs have none. A robot that is absent has these.
	Robots map[sessions.RobotCode]*Values
	// Serving reports whether a robot is configured; nil: each is. Former has the values of those that are not; nil: the common ones.
	Serving func(sessions.RobotCode) bool
	Former  *Values
}

// Serves reports whether a robot is configured.
func (v *Values) Serves(robot sessions.RobotCode) bool { return v.Serving == nil || v.Serving(robot) }

// ForRobot returns the values of a robot. One that is not configured has no tools beyond the built-in ones: its own list of tools is gone
// with it.
func (v *Values) ForRobot(robot sessions.RobotCode) *Values {
	switch own := v.Robots[robot]; {
	case own != nil:
		return own
	case v.Former != nil && !v.Serves(robot):
		return v.Former
	}
	return v
}

// ofSession costs nothing where all robots have the same values.
func (v *Values) ofSession(key sessions.Key) *Values {
	if len(v.Robots) == 0 && v.Former == nil {
		return v
	}
	robot, _ := key.Conversation()
	return v.ForRobot(robot)
}

// Group returns the settings of a conversation, those of the robot filled in. has says that there are any.
func (v *Values) Group(id sessions.ConversationID) (g Group, has bool) {
	g, has = v.Groups[id]
	g.Prompt, g.Model = cmp.Or(g.Prompt, v.Common.Prompt), cmp.Or(g.Model, v.Common.Model)
	if len(g.Tools) == 0 {
		g.Tools = v.Common.Tools
	}
	return g, has
}

// HasOwnFrame reports whether requests of the robot differ from those of the process.
func (v *Values) HasOwnFrame() bool {
	return v.Name != "" || v.Common.Prompt != "" || v.Common.Model != "" || len(v.Common.Tools) > 0
}

// Group has the settings of one conversation. An empty field keeps the common one.
type Group struct {
	Scope    sessions.Scope // for accepted messages
	Language string         // zh or en: for fixed words and the model's answers
	Prompt   string
	Model    string
	Tools    []string // names
}

// Validate returns why compactions can't work, or nil.
func (v *Values) Validate() error {
	if err := v.Compaction.Validate(); err != nil {
		return fmt.Errorf("compaction: %w", err)
	}
	for id, own := range v.Compactions {
		if err := own.Validate(); err != nil {
			return fmt.Errorf("compaction of group %s: %w", id, err)
		}
	}
	return nil
}

// Current is the values in force. A turn in progress keeps those that it began with.
type Current struct {
	mu     sync.RWMutex
	newest *Values
	pinned map[sessions.Key]*Values
}

// New puts v in force.
func New(v Values) *Current {
	return &Current{newest: &v, pinned: map[sessions.Key]*Values{}}
}

// Replace puts v in force for work that begins from now on.
func (c *Current) Replace(v Values) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = &v
}

// Get returns the newest values.
func (c *Current) Get() *Values {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.newest
}

// For returns the values that the session's turn began with, else the newest.
func (c *Current) For(key sessions.Key) *Values {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v := c.pinned[key]
	if v == nil {
		v = c.newest
	}
	return v.ofSession(key)
}

// Newest returns the newest values of a session's robot, also during a turn.
func (c *Current) Newest(key sessions.Key) *Values { return c.Get().ofSession(key) }

// Pin keeps the newest values for a session until release is called. A session has one turn at a time.
func (c *Current) Pin(key sessions.Key) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned[key] = c.newest
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pinned, key)
	}
}

// Language is empty without a conversation's own.
func (c *Current) Language(id sessions.ConversationID) string { return c.Get().Groups[id].Language }

// Generate asks the model of the session that ctx names. Background work that began before a reload may name a model
// that is gone, and gets the default one.
func (c *Current) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	v := c.For(llm.SessionOf(ctx))
	if len(v.Models) > 0 && !slices.ContainsFunc(v.Models, func(m llm.ModelChoice) bool { return m.Name == r.Model }) {
		r.Model = ""
	}
	return v.Model.Generate(ctx, r)
}

// WithoutTools implements llm.Toolless.
func (c *Current) WithoutTools(model string) bool {
	m, ok := c.Get().Model.(llm.Toolless)
	return ok && m.WithoutTools(model)
}

// States implements llm.States.
func (c *Current) States() map[string]llm.State {
	if m, ok := c.Get().Model.(llm.States); ok {
		return m.States()
	}
	return nil
}
