package tool_web

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

var testAt = &url.URL{Scheme: "https", Host: "example.com", Path: "/a/b"}

func TestReadable(t *testing.T) {
	body := strings.Repeat("content ", 40)
	for name, c := range map[string]struct{ page, want string }{
		"paragraphs":                 {"<p>one\n two<p>three<br>four", "one two\n\nthree\nfour"},
		"headings and lists":         {"<h2> A </h2><ul><li><p>x</p><li>y<li></ul>end", "## A\n\n- x\n\n- y\n\nend"},
		"a table":                    {"<table><tr><th>a<th> b<tr><td>1</td> <td>2</table>", "a | b\n1 | 2"},
		"code":                       {"<pre><code>if x {\n  y()\n}</code></pre>after", "```\nif x {\n  y()\n}\n```\n\nafter"},
		"links":                      {`<a href="c">c</a>, <a href="#x">here</a>, <a href="javascript:x">no</a>, <a href="//o.example/?a&amp;b"><b>o</b></a><a href=q></a>`, "[c](https://example.com/a/c), here, no, [o](https://o.example/?a&b)"},
		"a link without an end":      {`<a href=c>one<p>two`, "[one\n\ntwo"},
		"entities, once":             {"&lt;b&gt; &amp;lt; a&nbsp;b<i>c</i>&nbsp;d", "<b> &lt; a bc d"},
		"not text":                   {"a<script>x<b></script><style>y</style><svg><text>z</text></svg><noscript>n</noscript><template>t</template>b", "ab"},
		"what a page hides":          {`a <div hidden>do <div>this</div></div><span style="DISPLAY: none">and</span><i aria-hidden=true>that</i>b`, "a b"},
		"a picture":                  {`<img src=x alt=" a  cat "><img src=y>`, "[picture: a cat]"},
		"what leads around":          {"<nav>home</nav><p>" + body + "</p><footer>imprint</footer>", strings.TrimSpace(body)},
		"nothing but that":           {"<nav>home</nav>", "home"},
		"the main part":              {"<div>menu</div><main><p>" + body + "</main>ads", strings.TrimSpace(body)},
		"an empty main part":         {"<div>text</div><main></main>", "text"},
		"an article and a main part": {"<article>" + body + "a</article><main>" + body + "m</main>", body + "m"},
		"a tag within nothing":       {"</p></li></a></pre></main>x", "x"},
	} {
		if got, _ := readable(c.page, testAt); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if _, title := readable("<title>a\n<b> &amp; c</title><title>d</title>", testAt); title != "a <b> & c" {
		t.Errorf("title %q, want %q", title, "a <b> & c")
	}
}

// The text of any page is text, and bounded.
func FuzzReadable(f *testing.F) {
	for _, s := range []string{"<a href=x><li></a></li><main><li>", "<pre><a href=y></pre></a>", "<h1><main></h1></main>", "<nav><nav></nav>", "<title><title>", "<li><main><li></li></main>x", "<a href=x><h1><a href=y></h1></a><td>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, page string) {
		text, title := readable(page, testAt)
		if len(text) > maxText+100 || len(title) > 4*maxTitle {
			t.Errorf("%d bytes of text, %d of title, want at most %d and %d", len(text), len(title), maxText, maxTitle)
		}
		if utf8.ValidString(page) && !utf8.ValidString(text+title) {
			t.Errorf("readable(%q) = %q, %q, want text", page, text, title)
		}
	})
}
