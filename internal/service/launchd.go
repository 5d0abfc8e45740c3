package service

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// Label is the name of the service in launchd.
const Label = "ai.yaya"

// plist is the property list of launchd (launchd.plist(5)).
func (s Spec) plist() []File {
	var b strings.Builder
	line := func(depth int, text string) { b.WriteString(strings.Repeat("\t", depth) + text + "\n") }
	str := func(depth int, text string) { line(depth, "<string>"+escaped(text)+"</string>") }
	key := func(depth int, name string) { line(depth, "<key>"+name+"</key>") }
	line(0, `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">`)
	line(0, `<plist version="1.0">`)
	line(0, "<dict>")
	key(1, "Label")
	str(1, Label)
	key(1, "ProgramArguments")
	line(1, "<array>")
	for _, a := range append([]string{s.Program}, s.Args...) {
		str(2, a)
	}
	line(1, "</array>")
	if s.System {
		key(1, "UserName")
		str(1, s.User)
	}
	if len(s.Env) > 0 {
		key(1, "EnvironmentVariables")
		line(1, "<dict>")
		for _, e := range s.Env {
			name, value, _ := strings.Cut(e, "=")
			key(2, escaped(name))
			str(2, value)
		}
		line(1, "</dict>")
	}
	key(1, "RunAtLoad")
	line(1, "<true/>")
	key(1, "KeepAlive")
	line(1, "<dict>")
	key(2, "SuccessfulExit")
	line(2, "<false/>")
	line(1, "</dict>")
	key(1, "ExitTimeOut")
	line(1, "<integer>60</integer>")
	key(1, "SoftResourceLimits")
	line(1, "<dict>")
	key(2, "NumberOfFiles")
	line(2, "<integer>65536</integer>")
	line(1, "</dict>")
	for _, stream := range []string{"StandardOutPath", "StandardErrorPath"} {
		key(1, stream)
		str(1, s.Log)
	}
	line(0, "</dict>")
	line(0, "</plist>")
	return []File{{Label + ".plist", `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + signed("<!--", b.String())}}
}

func escaped(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return "" // a buffer takes everything
	}
	return b.String()
}
