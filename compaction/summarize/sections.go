package summarize

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"ebb/compaction"
	"ebb/compaction/audit"
)

type summarySection struct {
	Title string
	Hint  string
}

type profileLayout struct {
	Chinese, English []summarySection // empty: one line for each event
	// Required rejects a draft without all headings.
	Required bool
}

func (l profileLayout) sectionsIn(language string) []summarySection {
	if language == "en" {
		return l.English
	}
	return l.Chinese
}

// layoutOf gives unknown profiles the layout of a chat.
func layoutOf(p compaction.Profile) profileLayout {
	if l, ok := layouts[p]; ok {
		return l
	}
	return layouts[compaction.ProfileChat]
}

var layouts = map[compaction.Profile]profileLayout{
	compaction.ProfileChat: {
		Chinese: []summarySection{
			{Title: "用户与身份"}, {Title: "进行中的任务"}, {Title: "已完成"}, {Title: "待办与承诺"}, {Title: "决定与约束"}, {Title: "未决问题"}, {Title: "关键标识"},
		},
		English: []summarySection{
			{Title: "People"},
			{Title: "Work in progress"},
			{Title: "Done"},
			{Title: "To do and promised"},
			{Title: "Decisions and constraints"},
			{Title: "Open questions"},
			{Title: "Identifiers"},
		},
	},
	compaction.ProfileWork: {
		Chinese: []summarySection{
			{"进行中的工作", "在做什么、到了哪一步、卡在哪里、下一步是什么"},
			{"待办与承诺", "谁答应了什么、什么时候"},
			{"已完成", ""},
			{"决定与约束", "连同理由"},
			{"未决问题", ""},
			{"用户与偏好", ""},
			{"关键标识", "编号、链接、日期、金额"},
		},
		English: []summarySection{
			{"Work in progress", "what is being done, how far it is, what blocks it, what comes next"},
			{"To do and promised", "who promised what, and when"},
			{"Done", ""},
			{"Decisions and constraints", "with their reasons"},
			{"Open questions", ""},
			{"People and preferences", ""},
			{"Identifiers", "ids, links, dates, amounts"},
		},
	},
	// English names in both languages: people and tools search for them.
	compaction.ProfileTechnical: {
		Chinese: []summarySection{
			{"Technical Context", "技术环境：在用的开发环境、工具、框架和配置"},
			{"Project Overview", "项目概览：目标、功能、范围，主要部件和它们的关系"},
			{"Code Changes", "代码改动：新建、修改、分析过的文件，加了什么实现"},
			{"Debugging & Issues", "调试与问题：遇到的问题、根因、解决办法"},
			{"Current Status", "当前状态：刚完成了什么，代码处于什么状态"},
			{"Pending Tasks", "待办：马上要做的和优先级，已知的问题"},
			{"User Preferences", "用户偏好：代码风格、格式、工作方式"},
			{"Key Decisions", "关键决定：重要的技术决定和理由"},
		},
		English: []summarySection{
			{"Technical Context", "environment, tools, frameworks and configuration in use"},
			{"Project Overview", "goals, features and scope; the main parts and how they relate"},
			{"Code Changes", "files created, modified or looked into, and what was implemented"},
			{"Debugging & Issues", "problems met, their causes, how they were solved"},
			{"Current Status", "what was just finished, and what state the code is in"},
			{"Pending Tasks", "next steps by priority, and known issues"},
			{"User Preferences", "style, formatting and ways of working"},
			{"Key Decisions", "important technical decisions and their reasons"},
		},
		Required: true,
	},
	compaction.ProfileEvents: {},
	compaction.ProfileDay: {
		Chinese: []summarySection{
			{"当天要点", "做了什么、到了哪一步"}, {"决定", "连同理由"}, {"待办与承诺", "谁、做什么、什么时候"}, {"未决问题", ""}, {"关键标识", "编号、链接、日期、金额"},
		},
		English: []summarySection{
			{"What happened", "what was done, and how far it is"},
			{"Decisions", "with their reasons"},
			{"To do and promised", "who, what, by when"},
			{"Open questions", ""},
			{"Identifiers", "ids, links, dates, amounts"},
		},
	},
}

func (l profileLayout) missingHeadings(text, language string) []string {
	if !l.Required {
		return nil
	}
	var out []string
	low := strings.ToLower(text)
	for _, s := range l.sectionsIn(language) {
		if !strings.Contains(low, strings.ToLower(s.Title)) {
			out = append(out, s.Title)
		}
	}
	return out
}

// IsHeading reports whether a line is a heading of a layout or of healing.
func IsHeading(line string) bool {
	if !strings.HasPrefix(line, "#") {
		return false
	}
	for _, headings := range []map[string]string{audit.HealHeadings, attachmentHeadings} {
		for _, h := range headings {
			if line == h {
				return true
			}
		}
	}
	title := strings.TrimSpace(strings.TrimLeft(line, "#"))
	for _, l := range layouts {
		if slices.ContainsFunc(slices.Concat(l.Chinese, l.English), func(s summarySection) bool { return s.Title == title }) {
			return true
		}
	}
	return false
}

//go:embed summary.md
var promptText string

var promptTemplate = template.Must(template.New("summary.md").Parse(promptText))

// promptData fills the template. It holds no text of people.
type promptData struct {
	Chinese   bool
	Target    int // tokens
	Sections  []summarySection
	Summaries bool // the source is older summaries
	Repair    bool // a draft is revised
}

// String is the text of the prompt.
func (w promptData) String() string {
	var b strings.Builder
	if err := promptTemplate.Execute(&b, w); err != nil {
		panic(err) // unreachable: template and values are fixed
	}
	return strings.TrimSpace(b.String())
}

// PromptVersion is a hash of the instructions: a draft staged under other instructions is not used.
func PromptVersion() string {
	h := sha256.New()
	_, _ = io.WriteString(h, promptText)             // a hash never fails
	fmt.Fprint(h, layouts, audit.RepairInstructions) // maps print in key order
	return hex.EncodeToString(h.Sum(nil)[:6])
}
