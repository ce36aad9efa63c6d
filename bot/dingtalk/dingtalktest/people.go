package dingtalktest

import (
	"sort"
	"strings"
)

// AddUser makes a person known, or changes one; who speaks without it is made up from the staff id.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addUser(u)
}

// AddGroup adds or changes a group. A message in an unknown group creates it.
func (s *Server) AddGroup(g Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addGroup(g)
}

func (s *Server) addUser(u User) *User {
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

func (s *Server) addGroup(g Group) *group {
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

func (s *Server) userLocked(staffID string) *User {
	if u := s.users[staffID]; u != nil {
		return u
	}
	return s.addUser(User{StaffID: staffID})
}

// DirectConversation is the id of the private chat of a person with the bot.
func DirectConversation(staffID string) string { return "cidDirect" + staffID + "==" }

func (s *Server) conversationLocked(m Message) *group {
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

func (s *Server) appByClientLocked(clientID string) *app {
	for _, a := range s.apps {
		if a.ClientID == clientID {
			return a
		}
	}
	return nil
}

func (s *Server) appByRobotLocked(code string) *app {
	for _, a := range s.apps {
		if a.RobotCode == code {
			return a
		}
	}
	return nil
}

// SetDisbanded says whether a group is disbanded: replies to it are refused then.
func (s *Server) SetDisbanded(conversation string, disbanded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[conversation]
	if g == nil {
		g = s.addGroup(Group{ID: conversation})
	}
	g.Disbanded = disbanded
}

// memberLocked reports whether id names a member of the group: by staff id, or by encrypted id.
func (s *Server) memberLocked(g *group, id string) bool {
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

func sortedKeys(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func hasLiteral(text, id string) bool { return strings.Contains(text, "@"+id) }
