// Package gateway composes a running replica from a configuration: database, models, transport, admin server and the
// bot. No other package knows the concrete types of all parts.
package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"ebb/bot"
	"ebb/bot/admin"
	"ebb/bot/chat"
	"ebb/bot/config"
	"ebb/bot/dingtalk"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/markdown"
	"ebb/bot/media"
	"ebb/bot/media/document"
	"ebb/bot/openai"
	"ebb/bot/retention"
	"ebb/bot/robots"
	"ebb/bot/schedule"
	"ebb/bot/tools"
	"ebb/bot/tools/mcp"
	"ebb/bot/turn/answer"
	"ebb/bot/view"
	"ebb/compaction/tokens"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
	"ebb/sql"
	"ebb/sql/localpg"
	"ebb/sql/pg"
)

// gateway has its parts in the order of construction.
type gateway struct {
	cfg       *config.Config
	inForce   atomic.Pointer[config.Config] // the newest accepted one, for values that change without a restart
	private   *localpg.Server               // nil with an external database
	store     *sql.Store
	model     *openai.Client   // the client of inForce
	embedder  *openai.Embedder // nil without an endpoint
	replica   sessions.ReplicaID
	transport chat.Transport
	robot     func() sessions.RobotCode // the one that writes to administrators; nil without DingTalk
	calls     governors                 // empty without DingTalk
	robots    *robots.Registry
	servers   *mcp.Pool
	bot       *bot.Bot
	login     pages.Identity // nil unless people log in to the console by DingTalk
	console   http.Handler
	address   string // address of the admin server; empty: none
	log       *zerolog.Logger
	registry  *prometheus.Registry
	location  *time.Location
}

// Options are a caller's choices besides the configuration.
type Options struct {
	Transport chat.Transport // nil: DingTalk
	Display   chat.Display   // nil: DingTalk cards, as configured
	Version   string         // the release, for log and metrics
	Reload    Reload
}

// Serve runs a gateway until ctx ends: admin server, database, then the bot. It closes them in reverse order, so that
// the admin server answers to the last.
func Serve(ctx context.Context, cfg *config.Config, o Options) error {
	log := zerolog.Ctx(ctx)
	for _, w := range cfg.Warnings {
		log.Warn().Msg(w)
	}
	var running atomic.Pointer[gateway]
	registry := prometheus.NewRegistry()
	registry.MustRegister(buildInfo(o.Version), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ready := func(ctx context.Context) error {
		g := running.Load()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case g == nil:
			return errors.New("starting")
		}
		return g.ready(ctx)
	}
	address := ""
	alive, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAdmin()
	if cfg.Admin.Listen != "" {
		s, err := admin.Listen(ctx, admin.Options{
			Listen: cfg.Admin.Listen, Token: cfg.Admin.Token.Reveal(), Metrics: registry, Ready: ready, Console: consoleOf(&running),
		})
		if err != nil {
			return err
		}
		address = reachableAddress(s.Addr())
		go s.Serve(alive)
		log.Info().Str("admin", s.Addr()).Msg("Admin server listens")
	}
	g, err := open(ctx, cfg, registry, address, o)
	if err != nil && ctx.Err() != nil {
		log.Info().Err(err).Msg("Stopped while starting: there is nothing to drain")
		return nil
	}
	if err != nil {
		return err
	}
	defer g.close(alive)
	running.Store(g)
	// This line gives the replica's name in restart reports and leases.
	log.Info().Str("replica", string(g.replica)).Str("version", o.Version).Str("connections", cfg.DingTalk[0].Connections).Msg("Serving")
	defer g.runServers(ctx)()
	defer g.fillVectors(ctx)()
	defer g.watchCalls(ctx)()
	defer g.watchReloads(ctx, o.Reload)()
	return g.bot.Run(ctx)
}

func buildInfo(version string) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ebb", Name: "build_info", Help: "1, with the release and the Go version that it was built with."}, []string{"version", "go"})
	info.WithLabelValues(version, runtime.Version()).Set(1)
	return info
}

// open builds the parts in the order in which they need each other. A failure closes those that are open: a private PostgreSQL must
// not stay behind.
func open(ctx context.Context, cfg *config.Config, registry *prometheus.Registry, address string, o Options) (*gateway, error) {
	loc, err := time.LoadLocation(cfg.Agent.Timezone)
	if err != nil {
		return nil, fmt.Errorf("agent.timezone: %w", err)
	}
	g := &gateway{cfg: cfg, registry: registry, transport: o.Transport, location: loc, replica: replicaID(cfg), address: address, log: zerolog.Ctx(ctx)}
	g.inForce.Store(cfg)
	if g.embedder, err = openEmbedder(cfg.Agent.Memory.Embeddings); err != nil {
		return nil, err
	}
	if err := g.openStore(ctx); err != nil {
		g.close(ctx)
		return nil, err
	}
	if err := g.openBot(o); err != nil {
		g.close(ctx)
		return nil, err
	}
	if g.console, err = g.openConsole(); err != nil {
		g.close(ctx)
		return nil, err
	}
	return g, nil
}

// openStore starts or finds PostgreSQL, migrates the schema and connects. It waits for an unavailable database:
// replicas may start first after a power cut.
func (g *gateway) openStore(ctx context.Context) error {
	url := g.cfg.Database.URL.Reveal()
	if url == "" {
		p, err := localpg.Start(ctx, localpg.Options{Dir: g.cfg.Database.Dir})
		if err != nil {
			return err
		}
		g.private, url = p, p.URL()
	}
	return retry.Do(ctx, retry.Pauses{First: 250 * time.Millisecond, Max: 5 * time.Second}, func() error {
		err := DatabaseFault(g.connect(ctx, url))
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || g.private != nil || !pg.Unavailable(err):
			return retry.Permanent(err)
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Database does not answer, waiting for it")
		return err
	})
}

func (g *gateway) connect(ctx context.Context, url string) error {
	if err := g.schema(ctx, cmp.Or(g.cfg.Database.DirectURL.Reveal(), url)); err != nil {
		return err
	}
	o := sql.Options{
		URL: url, DirectURL: g.cfg.Database.DirectURL.Reveal(), Pooler: g.cfg.Database.Pooler == config.PoolerTransaction,
		MaxConns: g.cfg.Database.MaxConns, LeaseTTL: g.cfg.Cluster.LeaseTTL, Location: g.location,
	}
	if g.embedder != nil {
		o.Embedder, o.EmbedWeight = g.embedder, g.cfg.Agent.Memory.Embeddings.Weight
	}
	store, err := sql.Open(ctx, o)
	if err != nil {
		return err
	}
	g.robots = robots.NewRegistry(store.Robots, robotsOf(g.cfg))
	if err := g.robots.Read(ctx); err != nil {
		store.Close()
		return err
	}
	g.store = store
	return nil
}

// schema brings the schema up to date. It warns of one of a newer release: during an upgrade older replicas serve beside newer ones.
func (g *gateway) schema(ctx context.Context, url string) error {
	if err := g.migrate(ctx, url); err != nil {
		return err
	}
	if newer, found := errors.AsType[sql.NewerError](sql.CheckNewer(ctx, url)); found {
		zerolog.Ctx(ctx).Warn().Err(newer).Msg("Schema is of a newer release, and parts of this one may fail on it")
	}
	return nil
}

// migrate only checks for pending migrations with database.migrate off, because statements fail on an older schema. A
// role without access to the migrations passes.
func (g *gateway) migrate(ctx context.Context, url string) error {
	log := zerolog.Ctx(ctx)
	if !g.cfg.Database.Migrate {
		err := OldSchema(ctx, url)
		if err == nil || errors.Is(err, sql.ErrOldSchema) || pg.Unavailable(err) {
			return err
		}
		log.Warn().Err(err).Msg("Migrations could not be looked at; the schema is taken to be up to date")
		return nil
	}
	done, err := sql.Migrate(ctx, url)
	if err != nil {
		return err
	}
	for _, m := range done {
		log.Info().Int64("version", m.Version).Msg("Schema migrated")
	}
	return nil
}

// openTransport connects nothing yet. cards are those of the robot.
func (g *gateway) openTransport(d config.DingTalkConfig, governor *calls.Governor, cards sessions.Cards) (*dingtalk.Transport, error) {
	c := dingtalk.Config{
		ClientID: d.ClientID, ClientSecret: d.ClientSecret.Reveal(), Serves: g.robots.Serves, APIBase: d.APIBase, OAPIBase: d.OAPIBase,
		RepliesPerMinute: d.RepliesPerMinute, KeepAlive: d.KeepAlive, Calls: governor, Pictures: markdown.PicturesOf(d.PictureHosts),
	}
	language := func(id sessions.ConversationID) string { return cmp.Or(g.bot.Language(id), g.cfg.Agent.Language) }
	c.Reactions = &dingtalk.Reactions{Store: cards, Language: language, Set: d.Reaction == config.ReactionOn}
	c.Cards = &dingtalk.Cards{
		Store: cards, Key: d.CardContentKey, Stream: card.Mode(d.CardStream), Interval: d.CardInterval, Thoughts: d.CardReasoning, Language: language,
	}
	if d.Reply == config.ReplyCard {
		c.Cards.Template = d.CardTemplateID
	}
	return dingtalk.New(c)
}

// openBot is the one place that knows all parts. A transport of the options is a terminal: it has no DingTalk, no robot, no limits
// and no access rules.
func (g *gateway) openBot(o Options) error {
	var err error
	var background []periodic.Task
	if g.model, err = OpenModel(g.cfg); err != nil {
		return err
	}
	if g.transport == nil {
		if background, err = g.openRobots(&o); err != nil {
			return err
		}
	}
	cleaner := retention.New(retention.Config{
		Store: g.store.Retention, Leads: g.isLeader, Metrics: g.registry,
		Periods: func() sessions.Retention { return g.inForce.Load().Periods() },
	})
	background = append(background, cleaner.Task())
	counter, err := tokens.NewCounter()
	if err != nil {
		return err
	}
	a, c := g.cfg.Agent, g.cfg.Agent.Compaction
	values := g.values(g.cfg, g.model)
	if o.Transport != nil {
		values.Access, values.Limits = nil, sessions.Limits{} // the operator's own terminal
	}
	media, err := g.openMedia(counter)
	if err != nil {
		return err
	}
	planner := g.planner()
	g.servers = g.openServers(o.Version)
	conf := bot.Config{
		Robot:  g.robot,
		Stores: g.store.Ports(), Memory: g.store.Memory(), Elector: g.store.Replicas, Transport: g.transport,
		Values: values, Counter: counter, Metrics: g.registry,
		Parts: bot.Parts{
			Tidying: g.store.FactUpkeep, Index: g.store.Index, Rights: g.store.Rights, Erasures: g.store.Erasure, Requests: g.store.Requests,
			Schedules: g.store.Schedules, Planner: planner, Approvals: g.store.Approvals, Media: media, Files: g.store.Sent, Kept: g.store.Files,
			Audit: g.store.Audit(), Reporter: g.store.Restarts,
			Outside: g.servers, Display: o.Display, Embeddings: g.refusals(),
		},
		ApprovalTimeout: g.cfg.Tools.ApprovalTimeout,
		Tools:           append(tools.All(ToolParts(g.store), g.location), tools.Remind(planner)), Replica: g.replica, LeaseTTL: g.cfg.Cluster.LeaseTTL,
		Name: a.Name, Language: a.Language, Prompt: a.Prompt, Location: g.location,
		OneStream: o.Transport == nil && g.cfg.DingTalk[0].Connections == config.ConnectionsOne,
		Scope:     sessions.Scope(a.SessionScope), AloneEach: !a.MergePending, MaxMerged: a.MaxMerged, MaxToolRounds: a.MaxToolRounds,
		MaxConcurrent: g.cfg.LLM.MaxConcurrent, SweepEvery: g.store.SweepEvery(),
		BusyNote: a.BusyNote, StaleAfter: a.StaleAfter, Gather: a.Gather, TurnTimeout: a.TurnTimeout,
		SummaryRetries: c.Retries,
		InlineDeadline: c.InlineDeadline, CompactDeadline: c.Deadline, CompactNotify: c.Notify,
		Remember: Remember(a.Memory), DigestAt: a.Memory.Digest,
		CallBudget: g.callBudget(), Drain: g.cfg.Shutdown.Drain, Flush: g.cfg.Shutdown.Flush, Background: background,
		SchemaTokens: g.cfg.Tools.SchemaTokens, Finder: tools.Finder,
	}
	g.bot, err = bot.New(conf)
	return err
}

// planner bounds reminders by the calls of the month, which a terminal has none of.
func (g *gateway) planner() *schedule.Planner {
	p := &schedule.Planner{
		Store: g.store.Schedules, Calls: schedule.Uncounted{}, Location: g.location,
		Settings: func() schedule.Settings { return g.inForce.Load().Schedule.Settings() },
	}
	if len(g.calls) > 0 {
		p.Calls = g.calls
	}
	return p
}

func (g *gateway) openMedia(counter *tokens.Counter) (bot.Media, error) {
	files, ok := g.transport.(chat.Files)
	if !ok {
		return answer.NoMedia{}, nil // a terminal has no files
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program that reads files: %w", err)
	}
	return media.New(media.Config{
		Store: g.store.Media, Files: files, Parser: document.NewSandbox(program), Count: counter.Count,
		MaxFile: func() int64 { return g.inForce.Load().Agent.Media.MaxBytes() },
	}), nil
}

// ToolParts are the stores that the built-in tools use.
func ToolParts(s *sql.Store) tools.Parts {
	return tools.Parts{Facts: s.Facts, Search: s.Search, Digests: s.Digests, Blobs: s.Compactions, Files: s.Media, Kept: s.Files}
}

// Remember converts the memory section of the configuration.
func Remember(m config.MemoryConfig) view.Remember {
	r := view.Remember{
		Recall: view.Recall(m.Recall), RecallTokens: m.RecallTokens, RecallTime: m.RecallTimeout, PinnedTokens: m.PinnedTokens,
		EveryTurn: m.Extract == config.ExtractTurn, Candidates: m.Candidates, TaskTTL: m.TaskTTL, MaxPerScope: m.MaxPerScope,
	}
	if m.Recall == config.RecallOff {
		r.Recall = view.RecallOff
	}
	return r
}

func replicaID(cfg *config.Config) sessions.ReplicaID {
	name := cfg.Cluster.ReplicaID
	if name == "" {
		name, _ = os.Hostname() // an empty name is fine: the random part makes it unique
	}
	return sessions.ReplicaID(name + "-" + rand.Text()[:10])
}

// ready returns why the gateway can't accept messages, or nil. The database comes first, because its faults cause most
// others.
func (g *gateway) ready(ctx context.Context) error {
	select {
	case <-g.bot.Draining():
	default:
		if err := databaseReason(g.store.Ping(ctx)); err != nil {
			return err
		}
	}
	return g.bot.Ready()
}

// databaseReason omits the server's message, because anyone may read /readyz.
func databaseReason(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pg.ErrReadOnly):
		return pg.ErrReadOnly
	}
	return errors.New("the database does not answer")
}

func (g *gateway) close(ctx context.Context) {
	if g.store != nil {
		g.store.Close()
	}
	if g.model != nil {
		g.model.Close()
	}
	if g.embedder != nil {
		g.embedder.Close()
	}
	if g.private != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		if err := g.private.Stop(stop); err != nil {
			zerolog.Ctx(ctx).Error().Err(err).Msg("Private PostgreSQL did not stop cleanly")
		}
	}
}
