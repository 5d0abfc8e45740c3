//go:build unix

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Purl    string `json:"purl"`
	// Properties has the digest of go.sum, which is of a module's files and of no single one.
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sbom lists what a program is made of in CycloneDX 1.6, from what go build has written into it.
func sbom(bin string, c commit) ([]byte, error) {
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return nil, fmt.Errorf("what %s is made of: %w", bin, err)
	}
	of := func(path, version, sum string) component {
		purl := "pkg:golang/" + strings.ReplaceAll(url.PathEscape(path), "%2F", "/") + "@" + url.QueryEscape(version)
		m := component{Type: "library", Ref: purl, Name: path, Version: version, Purl: purl}
		if sum != "" {
			m.Properties = []property{{"go:sum", sum}}
		}
		return m
	}
	self := of(module, "v"+c.version, "")
	self.Type = "application"
	parts := []component{of("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	refs := []string{parts[0].Ref}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, of(m.Path, m.Version, m.Sum))
		refs = append(refs, parts[len(parts)-1].Ref)
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":     map[string]any{"timestamp": c.at.Format(time.RFC3339), "component": self},
		"components":   parts,
		"dependencies": []map[string]any{{"ref": self.Ref, "dependsOn": refs}},
	}, "", "  ")
}
