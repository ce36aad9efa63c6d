package openaitest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/jpeg" // the formats that models take
	_ "image/png"
	"net/http"
	"strings"
)

// Picture is a picture in a request.
type Picture struct {
	Type          string // as the address says: image/png
	Width, Height int    // 0: it can't be read
	Color         string // in its middle: 红, 绿, 蓝, 白, 黑, or another one as #rrggbb
	After         string // the words before it in its message
	Bytes         int    // size of the part
}

// String is the picture as the scripted model names it: 红 640x480.
func (p Picture) String() string { return fmt.Sprintf("%s %dx%d", p.Color, p.Width, p.Height) }

var colorNames = map[[3]bool]string{
	{true, false, false}: "红", {false, true, false}: "绿", {false, false, true}: "蓝", {true, true, true}: "白", {}: "黑", {true, true, false}: "黄",
}

// picturesOf reads the pictures of a message's parts.
func picturesOf(content any) (pictures []Picture) {
	parts, _ := content.([]any)
	before := ""
	for _, part := range parts {
		one, _ := part.(map[string]any)
		if text, ok := one["text"].(string); ok {
			before = text
		}
		if address, ok := one["image_url"].(map[string]any); ok {
			url, _ := address["url"].(string)
			p := readPicture(url)
			p.After, p.Bytes = before, len(url)
			pictures = append(pictures, p)
		}
	}
	return pictures
}

func readPicture(url string) Picture {
	kind, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	b, err := base64.StdEncoding.DecodeString(data)
	if !ok || err != nil {
		return Picture{Type: kind}
	}
	img, format, err := image.Decode(bytes.NewReader(b))
	if err != nil || "image/"+format != kind {
		return Picture{Type: kind}
	}
	size := img.Bounds()
	r, g, b2, _ := img.At((size.Min.X+size.Max.X)/2, (size.Min.Y+size.Max.Y)/2).RGBA()
	const half = 0x8000
	name := colorNames[[3]bool{r > half, g > half, b2 > half}]
	if name == "" {
		name = fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b2>>8)
	}
	return Picture{Type: kind, Width: size.Dx(), Height: size.Dy(), Color: name}
}

// Pictures lists the pictures since the last answer in words.
func (r Request) Pictures() (pictures []Picture) {
	for _, m := range r.Messages {
		if m.Role == "assistant" && len(m.ToolCalls) == 0 {
			pictures = nil
		}
		pictures = append(pictures, m.Pictures...)
	}
	return pictures
}

// Seen is what the scripted model says about the pictures of a request; empty without one.
func (r Request) Seen() string {
	var names []string
	for _, p := range r.Pictures() {
		names = append(names, p.String())
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("看到 %d 张图片：%s", len(names), strings.Join(names, "、"))
}

func hasPictures(r Request) bool {
	for _, m := range r.Messages {
		if len(m.Pictures) > 0 {
			return true
		}
	}
	return false
}

// blind refuses pictures in the words of a provider.
func blind(name string, status int, body string) Behaviour {
	return Behaviour{Name: name, Refuse: func(_ string, r Request) (Reply, bool) { return refuse(status, body), hasPictures(r) }}
}

// blindBehaviours are models that see no pictures.
var blindBehaviours = []Behaviour{
	blind("no_pictures", http.StatusBadRequest, "{\"error\":{\"message\":\"Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 900\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"invalid_request_error\"}}"),
	blind("no_pictures_zh", http.StatusBadRequest, `{"error":{"code":"1210","message":"该模型不支持图片输入"}}`),
	blind("no_pictures_silent", http.StatusBadRequest, `{"error":{"code":"1210","message":"API 调用参数有误，请检查文档。"}}`),
	blind("no_pictures_404", http.StatusNotFound, `{"error":{"message":"No endpoints found that support image input","code":404}}`),
	blind("no_pictures_500", http.StatusInternalServerError, `{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}`),
	blind("no_pictures_vllm", http.StatusBadRequest, `{"object":"error","message":"/models/Qwen3-8B is not a multimodal model","type":"BadRequestError","param":null,"code":400}`),
	blind("no_pictures_string", http.StatusUnprocessableEntity, `{"detail":[{"type":"string_type","loc":["body","messages",1,"content"],"msg":"messages[1].content: Input should be a valid string"}]}`),
}
