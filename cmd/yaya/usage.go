package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// usage prints how to call a command, in the form of cobra's template. A template can call any
// exported method by its name, so a program that has one is linked with all methods of all types:
// yaya was 5 MB larger (TestNoTemplates).
func usage(c *cobra.Command) error {
	var b strings.Builder
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "\n\n%s:\n%s", title, strings.TrimRight(text, " \n"))
		}
	}
	b.WriteString("Usage:")
	if c.Runnable() {
		b.WriteString("\n  " + c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n  " + c.CommandPath() + " [command]")
	}
	if len(c.Aliases) > 0 {
		section("Aliases", "  "+c.NameAndAliases())
	}
	section("Examples", c.Example)
	commands := ""
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			commands += fmt.Sprintf("  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	section("Available Commands", commands)
	section("Flags", flagUsages(c.LocalFlags()))
	section("Global Flags", flagUsages(c.InheritedFlags()))
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nUse %q for more information about a command.", c.CommandPath()+" [command] --help")
	}
	_, err := fmt.Fprintln(c.OutOrStderr(), b.String())
	return err
}

// optionalValue finds the value of such a flag, which pflag puts behind a blank: with the
// blank, the value would be taken for an argument.
var optionalValue = lazyregexp.New(`(?m)^( +--[a-z-]+) (\[=[a-z]+\])`)

// flagUsages describes flags. The value of a flag whose value is optional is in its name, such
// as "[=networks]": pflag would add a long default to it, and leave no room for descriptions.
func flagUsages(f *pflag.FlagSet) string {
	optional := map[*pflag.Flag]string{}
	f.VisitAll(func(x *pflag.Flag) {
		if x.Value.Type() == "string" && x.NoOptDefVal != "" {
			optional[x], x.NoOptDefVal = x.NoOptDefVal, ""
		}
	})
	out := optionalValue().ReplaceAllString(f.FlagUsagesWrapped(helpWidth), "$1$2 ")
	for x, was := range optional {
		x.NoOptDefVal = was
	}
	return out
}

// wrapped is a long help text with lines of at most helpWidth. Indented lines stay unchanged.
func wrapped(long string) string {
	var out []string
	for paragraph := range strings.SplitSeq(long, "\n\n") {
		line := ""
		end := func() {
			if line != "" {
				out = append(out, line)
			}
			line = ""
		}
		for l := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(l, " ") || strings.HasPrefix(l, "\t") {
				end()
				out = append(out, l)
				continue
			}
			for word := range strings.FieldsSeq(l) {
				if line != "" && len(line)+1+len(word) > helpWidth {
					end()
				}
				if line != "" {
					line += " "
				}
				line += word
			}
		}
		end()
		out = append(out, "")
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// helpWidth is the maximum width of help texts: a terminal has at least 80 columns.
const helpWidth = 80
