package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"ebb/bot/config"
	"ebb/cmd/lab/rig"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sql"
	"ebb/sql/localpg"
)

// policyResult is a policy's bill over all talks.
type policyResult struct {
	name  string
	group resultGroup
	bill  policyBill // summaries copy every identifier
	worn  policyBill // summaries miss one identifier in ten; empty if not run
}

type resultGroup int

const (
	groupBaseline resultGroup = iota // simulated, for comparison
	groupPeer                        // simulated policies of other bots
	groupEngine                      // ours, really run
)

// missingTenth is the probability with which a careless summary copies an identifier.
const missingTenth = 0.9

// replayInHand bounds concurrent conversations.
const replayInHand = 4

const (
	balancedAsItComes = "balanced, 40 messages stay"
	balancedAtEight   = "balanced, 8 messages stay"
	balancedAtFour    = "balanced, 4 messages stay"
	budgetAtEight     = "token_budget, 8k"
)

// The budgets take effect in conversations of this length.
func ourPolicies() []ourPolicy {
	at := func(name, policy string, threshold, tail int) ourPolicy {
		c := config.Default().Agent.Compaction
		c.Policy, c.TailMessages = policy, tail
		// The remainder of the window after a compaction keeps its proportion to the threshold.
		c.MaxHistoryShare *= float64(threshold) / float64(c.AutoCompactThreshold)
		c.AutoCompactThreshold = threshold
		return ourPolicy{name: name, settings: c.Settings(compaction.Policies)}
	}
	worn := func(c ourPolicy) ourPolicy {
		c.worn = true
		return c
	}
	const own = 0 // the policy's own tail
	whole := config.Default().Agent.Compaction.AutoCompactThreshold
	return []ourPolicy{
		at("sliding_window, no cooldown", "sliding_window", whole, own), // which can't pass in a replay
		at("archive", "archive", whole, own),
		at("turns", "turns", whole, own),
		at("offload, 8k", "offload", budgetAt, own),
		at("offload, 16k", "offload", 2*budgetAt, own),
		worn(at(budgetAtEight, "token_budget", budgetAt, own)),
		at("token_budget, 16k", "token_budget", 2*budgetAt, own),
		worn(at(balancedAsItComes, "balanced", whole, own)),
		at(balancedAtEight, "balanced", whole, 8),
		at(balancedAtFour, "balanced", whole, 4),
	}
}

func simulateAll(talks []recordedTalk) []policyResult {
	var out []policyResult
	for _, p := range peerPolicies() {
		r := policyResult{name: p.name, group: p.group}
		for _, t := range talks {
			r.bill.addBill(simulateTalk(t, p, 1))
			r.worn.addBill(simulateTalk(t, p, missingTenth))
		}
		out = append(out, r)
	}
	return out
}

// Each talk has its own database: gateways on one database would pay for each other's sessions.
func runAll(ctx context.Context, server *localpg.Server, talks []recordedTalk, all []ourPolicy) (out []policyResult, err error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, err
	}
	template, err := server.NewDatabase(ctx, replayTemplate, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.DropDatabase(context.WithoutCancel(ctx), replayTemplate)) }()
	if _, err := sql.Migrate(ctx, template); err != nil {
		return nil, err
	}
	out = make([]policyResult, len(all))
	bills := make([][2]policyBill, len(all)*len(talks))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(replayInHand)
	for i, c := range all {
		out[i] = policyResult{name: c.name, group: groupEngine}
		for j, t := range talks {
			for k, copied := range []float64{1, missingTenth} {
				if k > 0 && !c.worn {
					continue
				}
				c := c
				c.copied = copied
				work.Go(func() (err error) {
					bills[i*len(talks)+j][k], err = c.replayAlone(ctx, server, counter, t)
					return err
				})
			}
		}
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	for i := range bills {
		r := &out[i/len(talks)]
		r.bill.addBill(bills[i][0])
		r.worn.addBill(bills[i][1])
	}
	return out, nil
}

func (c Comparison) billsByName() map[string]policyBill {
	out := map[string]policyBill{}
	for _, r := range c.results {
		out[r.name] = r.bill
	}
	return out
}

// Figures are our policies beside their targets.
func (c Comparison) Figures() []rig.Figure {
	all := c.billsByName()
	seed, balanced, budget := all[windowSeed], all[balancedAsItComes], all[budgetAtEight]
	share := func(what string, b policyBill, limit float64) rig.Figure {
		got := rig.Ratio(b.totalCost(targetPrice), seed.totalCost(targetPrice))
		return rig.Figure{
			Name: "cost of " + what, Measured: fmt.Sprintf("%.0f k, the fixed window %.0f k", b.totalCost(targetPrice)/1000, seed.totalCost(targetPrice)/1000),
			Ratio: fmt.Sprintf("%.2f x", got), Target: fmt.Sprintf("<= %.2f x", limit),
		}.AtMost(got, limit)
	}
	calls := rig.Ratio(float64(balanced.extraCalls()), float64(seed.extraCalls()))
	figures := []rig.Figure{
		share(balancedAsItComes, balanced, 0.5),
		rig.Figure{
			Name: "extra calls of " + balancedAsItComes, Measured: fmt.Sprintf("%d, the fixed window %d", balanced.extraCalls(), seed.extraCalls()),
			Ratio: fmt.Sprintf("%.3f x", calls), Target: "<= 0.125 x",
		}.AtMost(calls, 0.125),
		share(budgetAtEight, budget, 0.6),
	}
	for _, name := range []string{balancedAsItComes, budgetAtEight} {
		cached := all[name].cachedShare()
		figures = append(figures, rig.Figure{
			Name: "cached share of " + name, Measured: fmt.Sprintf("%.1f %%", 100*cached), Ratio: "-", Target: ">= 95 %",
		}.AtLeast(cached, 0.95))
	}
	return append(append(figures, c.coverageFigure()), equalTails(all)...)
}

func (c Comparison) coverageFigure() rig.Figure {
	worst, name := 2.0, ""
	for _, r := range c.results {
		if share := r.bill.covered.shareOf(); r.group == groupEngine && share < worst {
			worst, name = share, r.name
		}
	}
	return rig.Figure{
		Name: "past messages in the context, raw or summarized", Measured: fmt.Sprintf("%.1f %% (%s)", 100*worst, name), Ratio: "-", Target: "100 %",
	}.AtLeast(worst, 1)
}

// equalTails compares with each peer at its own raw tail.
func equalTails(all map[string]policyBill) []rig.Figure {
	var figures []rig.Figure
	for _, pair := range [][2]string{
		{balancedAtFour, picoclawDefault}, {balancedAtEight, nanobotDefault}, {budgetAtEight, pomelobotAtEight},
	} {
		ours, theirs := all[pair[0]], all[pair[1]]
		got := rig.Ratio(ours.totalCost(targetPrice), theirs.totalCost(targetPrice))
		figures = append(figures, rig.Figure{
			Name: pair[0] + " against " + pair[1],
			Measured: fmt.Sprintf("%.0f k against %.0f k; %.0f %% against %.0f %% covered", ours.totalCost(targetPrice)/1000, theirs.totalCost(targetPrice)/1000,
				100*ours.covered.shareOf(), 100*theirs.covered.shareOf()),
			Ratio: fmt.Sprintf("%.2f x", got), Target: "<= 1.05 x",
		}.AtMost(got, 1.05))
	}
	return figures
}

// survivedAfter are numbers of compactions.
var survivedAfter = [3]int{1, 5, 15}

// FormatTable has all figures of every policy. Costs are in thousands of uncached input tokens.
func (c Comparison) FormatTable() string {
	head := []string{"policy", "prompts", "cached", "calls", "their cost", "flushes", "their cost", "waits"}
	for _, price := range cachePrices {
		head = append(head, fmt.Sprintf("cost at %v", price))
	}
	head = append(head, "x window", "tail >=", "mean tail", "covered", "identifiers", "largest")
	rows := [][]string{head}
	seed := c.billsByName()[windowSeed].totalCost(targetPrice)
	for _, r := range c.results {
		b := r.bill
		row := []string{
			r.name, formatThousands(b.spend[callMain].prompt), fmt.Sprintf("%.1f %%", 100*b.cachedShare()),
		}
		for _, kind := range []callKind{callSummary, callFlush} {
			row = append(row, fmt.Sprint(b.spend[kind].calls), formatThousands(int(b.spend[kind].totalCost(targetPrice))))
		}
		row = append(row, fmt.Sprint(b.inline))
		for _, price := range cachePrices {
			row = append(row, formatThousands(int(b.totalCost(price))))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", rig.Ratio(b.totalCost(targetPrice), seed)), fmt.Sprint(b.tailMin),
			fmt.Sprintf("%.0f", b.meanTail()), fmt.Sprintf("%.1f %%", 100*b.covered.shareOf()), r.worn.formatSurvival(), fmt.Sprint(b.largest)))
	}
	return fmt.Sprintf("cost replay of %s, in thousands of uncached input tokens; output counts %dfold\n%s"+
		"calls: summaries and repairs; waits: calls before a reply; tail: raw messages at the least, tokens on average;\n"+
		"identifiers that remain %s compactions after their message, where summaries miss one in ten\n",
		c.source, outputPrice, rig.FormatTable(rows), strings.Join(strings.Fields(strings.Trim(fmt.Sprint(survivedAfter), "[]")), "/"))
}

func (b policyBill) formatSurvival() string {
	var parts []string
	for _, n := range survivedAfter {
		t := b.survived[n-1]
		if t.of == 0 {
			parts = append(parts, "-")
			continue
		}
		parts = append(parts, fmt.Sprintf("%.0f", 100*t.shareOf()))
	}
	return strings.Join(parts, "/") + " %"
}

func formatThousands(tokens int) string { return fmt.Sprintf("%.0f", float64(tokens)/1000) }

// Comparison is a replay of all policies.
type Comparison struct {
	source  string // origin of the talks
	results []policyResult
}

// Compare replays every policy on databases of one server, with the dialogues of a folder, or synthetic ones without
// it.
func Compare(ctx context.Context, server *localpg.Server, folder string) (Comparison, error) {
	talks, source := synthesizeTalks(synthTalks), "synthetic conversations"
	if folder != "" {
		var err error
		if talks, err = readTalks(folder); err != nil {
			return Comparison{}, err
		}
		source = "LoCoMo dialogues"
	}
	messages := 0
	for _, t := range talks {
		messages += len(t.said)
	}
	engine, err := runAll(ctx, server, talks, ourPolicies())
	if err != nil {
		return Comparison{}, err
	}
	return Comparison{
		source:  fmt.Sprintf("%d %s, %d messages", len(talks), source, messages),
		results: append(simulateAll(talks), engine...),
	}, nil
}
