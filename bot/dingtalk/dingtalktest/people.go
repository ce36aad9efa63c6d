package dingtalktest

import (
	"sort"
	"strings"
	"time"
)

type people struct {
	*core
	apps   []*app
	users  map[string]*User
	groups map[string]*group
}

func newPeople(c *core) *people {
	s := &people{core: c, users: map[string]*User{}, groups: map[string]*group{}}
	for _, a := range c.opts.Apps {
		if a.RobotCode == "" {
			a.RobotCode = a.ClientID
		}
		if a.CorpID == "" {
			a.CorpID = "dingcorpsim"
		}
		s.apps = append(s.apps, &app{
			App: a, dingtalkID: "$:LWCP_v1:$bot" + a.RobotCode, tokenExcuses: 1, apiByRoute: map[string]int{},
		})
	}
	for _, u := range c.opts.Users {
		s.addUser(u)
	}
	for _, g := range c.opts.Groups {
		s.addGroup(g)
	}
	return s
}

// core.mu guards every field of app.
type app struct {
	App
	dingtalkID   string
	apiCalls     int
	apiByRoute   map[string]int
	streamUse    int
	opens        int
	connected    bool      // has had a live connection
	deafSince    time.Time // zero while there is a live connection
	deaf         time.Duration
	maxLive      int
	backlog      []*delivery
	tokenFetches int
	tokenExcuses int // fetches that are no waste: the first, and one for each refusal and each opener, which may be a new process
}

type group struct {
	Group
	members map[string]bool
	robots  map[string]bool
	direct  string // staff id, for a one-to-one conversation
}

// AddUser adds or changes a person. An unknown speaker is derived from the staff id.
func (s *people) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addUser(u)
}

// AddGroup adds or changes a group. A message in an unknown group creates it.
func (s *people) AddGroup(g Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addGroup(g)
}

func (s *people) addUser(u User) *User {
	if u.Nick == "" {
		u.Nick = "User " + u.StaffID
	}
	if u.UnionID == "" {
		u.UnionID = "un" + u.StaffID
	}
	if u.DingtalkID == "" {
		u.DingtalkID = "$:LWCP_v1:$" + u.StaffID
	}
	s.users[u.StaffID] = &u
	return &u
}

func (s *people) addGroup(g Group) *group {
	if g.Title == "" {
		g.Title = "Group " + g.ID
	}
	if len(g.Robots) == 0 && len(s.apps) > 0 {
		g.Robots = []string{s.apps[0].RobotCode}
	}
	out := &group{Group: g, members: map[string]bool{}, robots: map[string]bool{}}
	for _, m := range g.Members {
		out.members[m] = true
	}
	for _, r := range g.Robots {
		out.robots[r] = true
	}
	s.groups[g.ID] = out
	return out
}

func (s *people) userLocked(staffID string) *User {
	if u := s.users[staffID]; u != nil {
		return u
	}
	return s.addUser(User{StaffID: staffID})
}

// DirectConversation is the id of a private chat with the bot.
func DirectConversation(staffID string) string { return "cidDirect" + staffID + "==" }

func (s *people) conversationLocked(m Message) *group {
	id := m.Conversation
	if m.Direct {
		if id == "" {
			id = DirectConversation(m.Sender)
		}
		if g := s.groups[id]; g != nil {
			return g
		}
		g := s.addGroup(Group{ID: id, Members: []string{m.Sender}})
		g.direct = m.Sender
		for _, a := range s.apps {
			g.robots[a.RobotCode] = true
		}
		return g
	}
	if id == "" {
		id = "cidSimGroup01AbCdEf=="
	}
	g := s.groups[id]
	if g == nil {
		g = s.addGroup(Group{ID: id})
	}
	g.members[m.Sender] = true
	for _, u := range m.AtUsers {
		g.members[u] = true
	}
	for _, r := range m.Robots {
		g.robots[r] = true
	}
	return g
}

func (s *people) appByClientLocked(clientID string) *app {
	for _, a := range s.apps {
		if a.ClientID == clientID {
			return a
		}
	}
	return nil
}

func (s *people) appByRobotLocked(code string) *app {
	for _, a := range s.apps {
		if a.RobotCode == code {
			return a
		}
	}
	return nil
}

// SetDisbanded sets whether replies to a group are refused.
func (s *people) SetDisbanded(conversation string, disbanded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[conversation]
	if g == nil {
		g = s.addGroup(Group{ID: conversation})
	}
	g.Disbanded = disbanded
}

// memberLocked accepts staff ids and encrypted ids.
func (s *people) memberLocked(g *group, id string) bool {
	if g.members[id] {
		return true
	}
	for m := range g.members {
		if u := s.users[m]; u != nil && u.DingtalkID == id {
			return true
		}
	}
	return false
}

func (s *people) directLocked(staffID string) string {
	for id, g := range s.groups {
		if g.direct == staffID {
			return id
		}
	}
	return DirectConversation(staffID)
}

func (s *people) spaceLocked(space string) string {
	kind, id, _ := strings.Cut(strings.TrimPrefix(space, "dtv1.card//"), ".")
	if kind == "IM_ROBOT" {
		return s.directLocked(id)
	}
	return id
}

func (s *people) orgCallsLocked(corp string) int {
	n := 0
	for _, a := range s.apps {
		if a.CorpID == corp {
			n += a.apiCalls
		}
	}
	return n
}

func (s *people) atUsersLocked(m Message, a *app) []any {
	at := []any{map[string]any{"dingtalkId": a.dingtalkID}}
	for _, code := range m.Robots {
		if b := s.appByRobotLocked(code); b != nil && b != a {
			at = append(at, map[string]any{"dingtalkId": b.dingtalkID})
		}
	}
	for _, id := range m.AtUsers {
		u := s.userLocked(id)
		entry := map[string]any{"dingtalkId": u.DingtalkID}
		if !u.External {
			entry["staffId"], entry["unionId"] = u.StaffID, u.UnionID
		}
		at = append(at, entry)
	}
	return at
}

func sortedKeys(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func hasLiteral(text, id string) bool { return strings.Contains(text, "@"+id) }
