package gateway

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"ebb/bot/config"
	"ebb/bot/config/strict"
	"ebb/bot/openai"
	"ebb/bot/reload"
	"ebb/bot/tools"
	"ebb/sessions"
)

// Reload says how the configuration is loaded again. Without signals it never is.
type Reload struct {
	Signals <-chan os.Signal
	Load    func() (*config.Config, error)
	Level   *LogLevel
}

type reloader struct {
	gateway *gateway
	Reload
	total  *prometheus.CounterVec
	robots config.Robots // those that run, as the last file that has them names them
}

const (
	reloadApplied = "applied"
	reloadRefused = "refused"
)

// watchReloads reloads at each signal until stop. Signals during a reload are one.
func (g *gateway) watchReloads(ctx context.Context, o Reload) (stop func()) {
	if o.Signals == nil {
		return func() {}
	}
	r := &reloader{gateway: g, Reload: o, robots: g.cfg.DingTalk, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "ebb", Name: "config_reloads_total", Help: "Signals to load the configuration again, by outcome: applied, refused.",
	}, []string{"outcome"})}
	r.total.WithLabelValues(reloadApplied)
	r.total.WithLabelValues(reloadRefused)
	g.registry.MustRegister(r.total)
	return inBackground(ctx, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-o.Signals:
				r.run(ctx)
			}
		}
	})
}

// run takes over all values that can change, or none.
func (r *reloader) run(ctx context.Context) {
	log := zerolog.Ctx(ctx).Sample(nil) // each level: an administrator waits for the line
	next, err := r.Load()
	if err == nil {
		err = r.apply(next)
	}
	if err != nil {
		r.total.WithLabelValues(reloadRefused).Inc()
		for _, fault := range listFaults(err) {
			log.Error().Err(fault).Msg("Configuration refused, the old one stays in force")
		}
		return
	}
	for _, w := range next.Warnings {
		log.Warn().Msg(w)
	}
	if _, restart := r.gateway.cfg.Changes(next); len(restart) > 0 {
		log.Warn().Strs("keys", restart).Msg("Changed keys need a restart")
	}
	changed, _ := r.gateway.inForce.Swap(next).Changes(next)
	r.total.WithLabelValues(reloadApplied).Inc()
	log.Info().Strs("keys", changed).Msg("Configuration reloaded")
}

// apply keeps the client of unchanged models, which knows the models that are down.
func (r *reloader) apply(next *config.Config) error {
	model := r.gateway.model
	if !reflect.DeepEqual(r.gateway.inForce.Load().LLM, next.LLM) {
		var err error
		if model, err = OpenModel(next); err != nil {
			return err
		}
	}
	robots := newestOf(r.robots, next.DingTalk)
	if err := r.gateway.bot.Reload(r.gateway.values(withRobots(next, robots), model)); err != nil {
		return err
	}
	r.robots = robots
	if model != r.gateway.model {
		r.gateway.model.Close() // calls in progress finish
		r.gateway.model = model
	}
	r.Level.Set(next.Log.Level)
	return nil
}

// newestOf returns the robots that run, each as the next file has it, else as before.
func newestOf(running, next config.Robots) config.Robots {
	all := slices.Clone(running)
	for i, d := range all {
		if at := indexOf(next, d.ClientID); at >= 0 {
			all[i] = next[at]
		}
	}
	return all
}

// withRobots adds the robots that the file does not have. They run until the restart, with their own access: the common one may admit more
// people. All that is common, such as the administrators, is that of the file.
func withRobots(file *config.Config, running config.Robots) *config.Config {
	all := *file
	all.DingTalk = slices.Clone(file.DingTalk)
	for _, d := range running {
		if indexOf(file.DingTalk, d.ClientID) < 0 {
			all.DingTalk = append(all.DingTalk, d)
		}
	}
	return &all
}

func indexOf(robots config.Robots, clientID string) int {
	return slices.IndexFunc(robots, func(d config.DingTalkConfig) bool { return d.ClientID == clientID })
}

// listFaults lists a configuration's faults, each with its file, line and field.
func listFaults(err error) []error {
	bad, ok := errors.AsType[*strict.Error](err)
	if !ok {
		return []error{err}
	}
	all := make([]error, len(bad.Fields))
	for i, f := range bad.Fields {
		all[i] = f
	}
	return all
}

func reloadable(cfg *config.Config, model *openai.Client) reload.Values {
	a := cfg.Agent
	v := reload.Values{
		Admins: make([]sessions.UserID, len(a.Admins)), CommandRights: cfg.Access.Rights(), Limits: a.Limits.Limits(),
		Model: model, Models: model.Models(), SummaryModel: a.Compaction.Model, Currency: cfg.LLM.Currency, Own: cfg.Own, Groups: cfg.GroupSettings(),
	}
	if !cfg.Schedule.Enabled {
		v.Withheld = []string{tools.RemindTool}
	}
	for i, id := range a.Admins {
		v.Admins[i] = sessions.UserID(id)
	}
	if v.SummaryModel == cfg.LLM.Default {
		v.SummaryModel = "" // no other model to fall back to
	}
	v.Access = cfg.Access.Rules(v.Admins)
	v.Compaction, v.Compactions = cfg.Policies()
	return cfg.WithRobots(v)
}

// values are those of a file for the robots that run. Without DingTalk each session is served.
func (g *gateway) values(cfg *config.Config, model *openai.Client) reload.Values {
	v := reloadable(cfg, model)
	if len(g.calls) == 0 {
		return v
	}
	former := v
	former.Robots, former.Common.Tools = nil, nil
	for _, tool := range tools.All(tools.Parts{}, nil) {
		former.Common.Tools = append(former.Common.Tools, tool.Spec().Name)
	}
	v.Serving, v.Former = g.robots.Serves, &former
	return v
}
