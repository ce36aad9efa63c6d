package dingtalk

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/files"
	"ebb/bot/dingtalk/openapi"
	"ebb/bot/dingtalk/request"
	"ebb/sessions"
)

// fileCalls get the files of messages, and upload those of replies.
type fileCalls struct {
	api     *openapi.Client
	judge   *request.Judge
	fetcher *files.Fetcher
	robots  robots
}

type downloadBody struct {
	Code  string             `json:"downloadCode"`
	Robot sessions.RobotCode `json:"robotCode"`
}

// Download is [chat.Files]: a picture has two codes; DingTalk has been seen to refuse one of them.
func (c fileCalls) Download(ctx context.Context, robot sessions.RobotCode, a sessions.Attachment, to *os.File, limit int64) error {
	if !c.robots.serves(robot) {
		return &chat.FileError{Fault: sessions.MediaExpired, Err: errOtherRobot}
	}
	return c.fetcher.Download(ctx, []string{a.Code, a.Other}, to, limit, func(ctx context.Context, code string) (string, *chat.FileError) {
		return c.addressOf(ctx, c.robots.codeOf(robot), code)
	})
}

const doingDownload = "asking for a file's address"

func (c fileCalls) addressOf(ctx context.Context, robot sessions.RobotCode, code string) (string, *chat.FileError) {
	a, failed := c.api.Do(ctx, openapi.Call{
		API: calls.Download, Need: calls.Finish, Method: http.MethodPost, Path: "/v1.0/robot/messageFiles/download", Doing: doingDownload,
		Body: downloadBody{code, robot},
	})
	if failed != nil {
		fault := sessions.MediaUnavailable
		if calls.IsRefused(failed) {
			fault = sessions.MediaNoCalls
		}
		return "", &chat.FileError{Fault: fault, Err: failed}
	}
	said := a.Body.Str("code")
	switch address := a.Body.Str("downloadUrl"); {
	case a.Status == http.StatusOK && address != "":
		return address, nil
	case a.Status >= 400 && a.Status < 500 && (strings.Contains(said, "downloadCode") || strings.Contains(said, "robotCode.auth")):
		return "", &chat.FileError{Fault: sessions.MediaExpired, Err: fmt.Errorf("%s: %s", doingDownload, a.Code())}
	case a.Class() == request.Exhausted:
		return "", &chat.FileError{Fault: sessions.MediaNoCalls, Err: fmt.Errorf("%s: %s", doingDownload, a.Code())}
	}
	return "", &chat.FileError{Fault: sessions.MediaUnavailable, Err: fmt.Errorf("%s: status %d: %s", doingDownload, a.Status, a.Code())}
}

// Upload is [chat.Uploader], by the old API.
func (c fileCalls) Upload(ctx context.Context, robot sessions.RobotCode, f sessions.File) (string, error) {
	if !c.robots.serves(robot) {
		return "", &chat.SendError{Permanent: true, Err: errOtherRobot}
	}
	form, err := files.FormOf(f)
	if err != nil {
		return "", &chat.SendError{Permanent: true, Err: err}
	}
	const doing = "uploading a file"
	a, failed := c.api.Do(ctx, openapi.Call{
		API: calls.Upload, Need: calls.Card, // as a card: the message behind it takes one more, and answers without a webhook come first
		Method: http.MethodPost, Path: "/media/upload?type=" + string(f.Kind), Doing: doing, Old: true, Body: form,
	})
	if failed == nil {
		failed = c.judge.OpenAPI(sessions.Target{}, a, doing)
	}
	media := a.Body.Str("media_id", "mediaId")
	switch {
	case failed != nil:
		failed.Aside, failed.Maybe = isBarred(a, failed), false // people see nothing of it
		return "", failed
	case media == "":
		return "", &chat.SendError{Err: fmt.Errorf("%s: the answer has no id", doing)}
	}
	return media, nil
}
