package gateway

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/dingtalk"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/robots"
	"ebb/sessions"
	"ebb/sessions/periodic"
)

// openRobots opens the transport of each bot. An only one is used as it is; several are joined, and their figures have the label bot.
func (g *gateway) openRobots(o *Options) (background []periodic.Task, err error) {
	several := len(g.cfg.DingTalk) > 1
	var all []robots.Robot
	for _, d := range g.cfg.DingTalk {
		code, cards, registry := sessions.RobotCode(d.ClientID), sessions.Cards(g.store.Cards), prometheus.Registerer(g.registry)
		name := cmp.Or(d.Name, d.ClientID)
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
	if !several {
		g.transport, g.robot, o.Display = all[0].Transport, func() sessions.RobotCode { return all[0].Code }, all[0].Display
		return background, nil
	}
	joined := robots.New(all)
	g.transport, g.robot, o.Display = joined, joined.First, joined.Display()
	return background, nil
}
