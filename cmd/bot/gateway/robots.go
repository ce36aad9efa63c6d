package gateway

import (
	"cmp"
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/config"
	"ebb/bot/dingtalk"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/robots"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sql"
)

// robotsOf are the robots of a file.
func robotsOf(cfg *config.Config) []sessions.Robot {
	all := make([]sessions.Robot, len(cfg.DingTalk))
	for i, d := range cfg.DingTalk {
		all[i] = sessions.Robot{Code: sessions.RobotCode(d.ClientID), Name: cmp.Or(d.Name, d.ClientID)}
	}
	return all
}

// openRobots opens the transport of each bot. An only one is used as it is; several are joined, and their figures have the label bot.
func (g *gateway) openRobots(o *Options) (background []periodic.Task, err error) {
	several := len(g.cfg.DingTalk) > 1
	background = append(background, g.robots.Task())
	var all []robots.Robot
	for i, one := range robotsOf(g.cfg) {
		d, code, name := g.cfg.DingTalk[i], one.Code, one.Name
		cards, registry := g.store.Cards.Without(g.otherCodes), prometheus.Registerer(g.registry)
		if several {
			cards, registry = g.store.Cards.ForRobot(code), prometheus.WrapRegistererWith(prometheus.Labels{"bot": name}, registry)
		}
		governor := calls.New(calls.Options{Store: g.store.Calls.ForRobot(code), Quota: int64(d.APICallsPerMonth)})
		t, err := g.openTransport(d, governor, cards)
		if err != nil {
			return nil, err
		}
		registerStats(registry, t)
		registerCalls(registry, governor)
		g.calls = append(g.calls, robotCalls{code, governor})
		background = append(background, t.Background()...)
		all = append(all, robots.Robot{Code: code, Name: name, Transport: t, Display: t.Display()})
	}
	first, isDingTalk := all[0].Transport.(*dingtalk.Transport)
	if isDingTalk {
		g.login = g.openLogin(first)
	}
	joined := robots.New(all, g.robots)
	g.transport, g.robot, o.Display = joined, joined.First, joined.Display()
	if !several { // the codes of its messages are those of its frames
		g.transport = all[0].Transport
	}
	return background, nil
}

func (g *gateway) otherCodes() []sessions.RobotCode {
	others := g.robots.Others()
	codes := make([]sessions.RobotCode, len(others))
	for i, one := range others {
		codes[i] = one.Code
	}
	return codes
}

// FormerRobot is one that the configuration does not have.
type FormerRobot struct {
	sessions.Robot

	Left sessions.RobotWork
}

// FormerRobots lists those with sessions. url is the direct address of the database, whose schema is up to date.
func FormerRobots(ctx context.Context, cfg *config.Config, url string) (all []FormerRobot, err error) {
	store, err := sql.Open(ctx, sql.Options{URL: url, MaxConns: 2})
	if err != nil {
		return nil, DatabaseFault(err)
	}
	defer store.Close()
	if slices.ContainsFunc(cfg.DingTalk, func(d config.DingTalkConfig) bool { return d.ClientID == "" }) {
		return nil, nil // it may be any of them
	}
	registry := robots.NewRegistry(store.Robots, robotsOf(cfg))
	if err := registry.Read(ctx); err != nil {
		return nil, err
	}
	for _, one := range registry.Others() {
		left, err := store.Robots.LeftBy(ctx, one.Code)
		if err != nil {
			return nil, err
		}
		if left != (sessions.RobotWork{}) {
			all = append(all, FormerRobot{one, left})
		}
	}
	return all, nil
}
