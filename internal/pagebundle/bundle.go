package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// index.html names first, which loads app once the language is known, and app the views when they are looked at.
const (
	first = "begin.js"
	app   = "app.js"
)

// bundle makes the files that are served of those in a folder.
func bundle(dir string) (map[string][]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	meta, err := build(files, dir, []string{first}, api.BuildOptions{
		Splitting: true, Format: api.FormatESModule, EntryNames: "[name]-[hash]", ChunkNames: "[name]-[hash]", Plugins: []api.Plugin{needsApp(dir)},
	})
	if err != nil {
		return nil, err
	}
	styles, err := filepath.Glob(filepath.Join(dir, "*.css"))
	if err != nil {
		return nil, err
	}
	for i, name := range styles {
		styles[i] = filepath.Base(name)
	}
	// The tokens are a part of app.css.
	styles = slices.DeleteFunc(styles, func(name string) bool { return name == "tokens.css" })
	if _, err := build(files, dir, styles, api.BuildOptions{EntryNames: "[name]"}); err != nil {
		return nil, err
	}
	for _, pattern := range []string{"*.svg", "*.json", "vendor/*.txt"} {
		all, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, from := range all {
			if files[path.Join(path.Dir(pattern), filepath.Base(from))], err = os.ReadFile(from); err != nil { //nolint:forbidigo,gosec // a tool for this repository
				return nil, err
			}
		}
	}
	index, err := os.ReadFile(filepath.Join(dir, "index.html")) //nolint:forbidigo,gosec // a tool for this repository
	if err != nil {
		return nil, err
	}
	files["index.html"], err = named(string(index), meta)
	return files, err
}

// metadata describes the files that esbuild has made, by path.
type metadata struct {
	Outputs map[string]struct {
		EntryPoint string `json:"entryPoint"`
		Imports    []struct {
			Path string `json:"path"`
			Kind string `json:"kind"`
		} `json:"imports"`
	} `json:"outputs"`
}

// build adds what esbuild makes of some files.
func build(files map[string][]byte, dir string, from []string, o api.BuildOptions) (m metadata, err error) {
	o.EntryPoints, o.AbsWorkingDir, o.Outdir, o.Outbase = from, dir, dir, dir
	o.Bundle, o.Metafile = true, true
	o.MinifyWhitespace, o.MinifyIdentifiers, o.MinifySyntax = true, true, true
	o.Target, o.Charset = api.ESNext, api.CharsetUTF8
	o.LegalComments = api.LegalCommentsNone // the licences are files of their own
	o.External = []string{"/ui/*"}          // of style sheets
	r := api.Build(o)
	var errs []error
	for _, m := range slices.Concat(r.Errors, r.Warnings) {
		at := ""
		if m.Location != nil {
			at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
		}
		errs = append(errs, errors.New(at+m.Text))
	}
	if err := errors.Join(errs...); err != nil {
		return m, err
	}
	for _, f := range r.OutputFiles {
		name, err := filepath.Rel(dir, f.Path)
		if err != nil {
			return m, err
		}
		files[filepath.ToSlash(name)] = f.Contents
	}
	return m, json.Unmarshal([]byte(r.Metafile), &m)
}

// needsApp has every module that is loaded later import app, which is there by then. Without that, esbuild splits
// the modules that app needs into one file for each set of views that needs them, and the browser begins with a
// dozen files.
func needsApp(dir string) api.Plugin {
	return api.Plugin{Name: "needs " + app, Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^\./`}, func(a api.OnResolveArgs) (r api.OnResolveResult, err error) {
			if a.Kind == api.ResolveJSDynamicImport {
				r.Path, r.PluginData = filepath.Join(a.ResolveDir, a.Path), true
			}
			return r, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `\.js$`}, func(a api.OnLoadArgs) (r api.OnLoadResult, err error) {
			if a.PluginData == nil || a.Path == filepath.Join(dir, app) {
				return r, nil
			}
			data, err := os.ReadFile(a.Path) //nolint:forbidigo // a tool for this repository
			text := "import './" + app + "'; " + string(data)
			r.Contents, r.ResolveDir = &text, dir
			return r, err
		})
	}}
}

// named returns index.html with the name of the file that the first module has become, and with all that the page
// begins with, so that the browser asks for it at once and not for one after the other as it reads them.
func named(index string, m metadata) ([]byte, error) {
	made := map[string]string{}
	for name, out := range m.Outputs {
		if out.EntryPoint != "" {
			made[out.EntryPoint] = name
		}
	}
	needed := map[string]bool{}
	var needs func(name string)
	needs = func(name string) {
		if needed[name] {
			return
		}
		needed[name] = true
		for _, i := range m.Outputs[name].Imports {
			if i.Kind == "import-statement" {
				needs(i.Path)
			}
		}
	}
	for _, entry := range []string{first, app} {
		if made[entry] == "" {
			return nil, fmt.Errorf("nothing was made of %s", entry)
		}
		needs(made[entry])
	}
	delete(needed, made[first])
	var links strings.Builder
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		fmt.Fprintf(&links, "\n    <link rel=\"modulepreload\" href=\"/ui/%s\" />", name)
	}
	script := fmt.Sprintf(`<script type="module" async src="/ui/%s"></script>`, first)
	if strings.Count(index, script) != 1 {
		return nil, fmt.Errorf("index.html has %s %d times, want it once", script, strings.Count(index, script))
	}
	return []byte(strings.Replace(index, script, strings.Replace(script, first, made[first], 1)+links.String(), 1)), nil
}
