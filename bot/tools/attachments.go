package tools

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions"
)

// maxShown bounds the pictures that one call brings back.
const maxShown = 4

// attachments shows the pictures of messages in the next request, and says of each attachment how it is read.
func attachments(ctx context.Context, files Files, in chat.ToolInput, events []sessions.Event) string {
	seqs := map[int64]int64{} // by the event that has the attachment
	var ids []int64
	for _, e := range events {
		ids = append(ids, e.ID)
		seqs[e.ID] = e.Seq
		if q := e.Message.Quote; q != nil && q.Event != 0 && seqs[q.Event] == 0 {
			ids = append(ids, q.Event)
			seqs[q.Event] = e.Seq
		}
	}
	known, err := files.Attachments(ctx, in.Reader.Key, ids)
	var pictures map[string]sessions.Picture
	if err == nil {
		pictures, err = files.Pictures(ctx, in.Reader.Key, pictureIDs(known))
	}
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Attachments of the log could not be read")
		return "\n[附件暂时读不了 the attachments can't be read at the moment]"
	}
	var b strings.Builder
	shown := map[string]bool{}
	for _, m := range known {
		fmt.Fprintf(&b, "\n[#%d %s: %s]", seqs[m.Event], cmp.Or(sessions.QuoteText(m.Name), "图片 picture"), showAttachment(in, m, pictures, shown))
	}
	return b.String()
}

func pictureIDs(known []sessions.Media) (ids []string) {
	for _, m := range known {
		if m.Kind == sessions.MediaPicture && m.Fault == "" {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// showAttachment says of an attachment where it is.
func showAttachment(in chat.ToolInput, m sessions.Media, pictures map[string]sessions.Picture, shown map[string]bool) string {
	switch picture, kept := pictures[m.ID]; {
	case m.Fault != "":
		return fmt.Sprintf("读不了 could not be read (%s)", m.Fault)
	case m.Kind != sessions.MediaPicture:
		return fmt.Sprintf("按页读 read a page: %s {\"path\":\"%s\",\"page\":N}", sessions.GetTool, sessions.FilePath(m.Event, m.Place))
	case !kept:
		return "图片已不再保存 the picture is not kept any more; say so"
	case shown[m.ID]:
		return "在下一条消息里 shown in the next message"
	case len(shown) >= maxShown:
		return fmt.Sprintf("一次最多 %d 张，请再读一次 at most %d pictures at once: read this message alone", maxShown, maxShown)
	default:
		m.Picture = &picture
		if !in.Show(m) {
			return "上下文放不下这张图片 no room for the picture in the context"
		}
		shown[m.ID] = true
		return "在下一条消息里 shown in the next message"
	}
}
