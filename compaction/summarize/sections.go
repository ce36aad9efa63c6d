package summarize

import (
	"crypto/sha256"
	"ebb/compaction"
	"ebb/compaction/audit"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
)

// section is a heading of a summary, and what belongs under it where the heading does not say.
type section struct {
	Title string
	Hint  string
}

// layout is how the summaries of a profile are divided.
type layout struct {
	Chinese, English []section // none: one line for each thing that happened
	// Required says that a draft without one of the headings is not finished.
	Required bool
}

// in is the sections in a language.
func (l layout) in(language string) []section {
	if language == "en" {
		return l.English
	}
	return l.Chinese
}

// layoutOf is the layout of a profile; that of a chat where the profile is none of ours.
func layoutOf(p compaction.Profile) layout {
	if l, ok := layouts[p]; ok {
		return l
	}
	return layouts[compaction.ProfileChat]
}

var layouts = map[compaction.Profile]layout{
	compaction.ProfileChat: {
		Chinese: []section{
			{Title: "用户与身份"}, {Title: "进行中的任务"}, {Title: "已完成"}, {Title: "待办与承诺"}, {Title: "决定与约束"}, {Title: "未决问题"}, {Title: "关键标识"},
		},
		English: []section{
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
		Chinese: []section{
			{"进行中的工作", "在做什么、到了哪一步、卡在哪里、下一步是什么"},
			{"待办与承诺", "谁答应了什么、什么时候"},
			{"已完成", ""},
			{"决定与约束", "连同理由"},
			{"未决问题", ""},
			{"用户与偏好", ""},
			{"关键标识", "编号、链接、日期、金额"},
		},
		English: []section{
			{"Work in progress", "what is being done, how far it is, what blocks it, what comes next"},
			{"To do and promised", "who promised what, and when"},
			{"Done", ""},
			{"Decisions and constraints", "with their reasons"},
			{"Open questions", ""},
			{"People and preferences", ""},
			{"Identifiers", "ids, links, dates, amounts"},
		},
	},
	// The English names stand in both languages: tools and people look for them.
	compaction.ProfileTechnical: {
		Chinese: []section{
			{"Technical Context", "技术环境：在用的开发环境、工具、框架和配置"},
			{"Project Overview", "项目概览：目标、功能、范围，主要部件和它们的关系"},
			{"Code Changes", "代码改动：新建、修改、分析过的文件，加了什么实现"},
			{"Debugging & Issues", "调试与问题：遇到的问题、根因、解决办法"},
			{"Current Status", "当前状态：刚完成了什么，代码处于什么状态"},
			{"Pending Tasks", "待办：马上要做的和优先级，已知的问题"},
			{"User Preferences", "用户偏好：代码风格、格式、工作方式"},
			{"Key Decisions", "关键决定：重要的技术决定和理由"},
		},
		English: []section{
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
		Chinese: []section{
			{"当天要点", "做了什么、到了哪一步"}, {"决定", "连同理由"}, {"待办与承诺", "谁、做什么、什么时候"}, {"未决问题", ""}, {"关键标识", "编号、链接、日期、金额"},
		},
		English: []section{
			{"What happened", "what was done, and how far it is"},
			{"Decisions", "with their reasons"},
			{"To do and promised", "who, what, by when"},
			{"Open questions", ""},
			{"Identifiers", "ids, links, dates, amounts"},
		},
	},
}

// lacking lists the required headings that a summary does not have.
func (l layout) lacking(text, language string) []string {
	if !l.Required {
		return nil
	}
	var out []string
	low := strings.ToLower(text)
	for _, s := range l.in(language) {
		if !strings.Contains(low, strings.ToLower(s.Title)) {
			out = append(out, s.Title)
		}
	}
	return out
}

// isHeading reports whether a line is a heading that a summary is asked for, or that healing adds.
func IsHeading(line string) bool {
	if !strings.HasPrefix(line, "#") {
		return false
	}
	for _, h := range audit.HealHeadings {
		if line == h {
			return true
		}
	}
	title := strings.TrimSpace(strings.TrimLeft(line, "#"))
	for _, l := range layouts {
		if slices.ContainsFunc(slices.Concat(l.Chinese, l.English), func(s section) bool { return s.Title == title }) {
			return true
		}
	}
	return false
}

//go:embed summary.md
var promptText string

var promptTemplate = template.Must(template.New("summary.md").Parse(promptText))

// wording is what the template is filled with: nothing that people said.
type wording struct {
	Chinese   bool
	Target    int // tokens
	Sections  []section
	Summaries bool // what is told are older summaries
	Repair    bool // a draft is revised
}

func (w wording) String() string {
	var b strings.Builder
	if err := promptTemplate.Execute(&b, w); err != nil {
		panic(err) // the template is linked in, and what fills it has no way to fail
	}
	return strings.TrimSpace(b.String())
}

// PromptVersion names the instructions that summaries are made by: text that was staged under others is not used.
func PromptVersion() string {
	h := sha256.New()
	_, _ = io.WriteString(h, promptText)             // a hash takes everything
	fmt.Fprint(h, layouts, audit.RepairInstructions) // maps are printed in the order of their keys
	return hex.EncodeToString(h.Sum(nil)[:6])
}
