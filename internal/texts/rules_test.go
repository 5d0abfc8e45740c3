package texts

import (
	"regexp"
	"strings"
	"testing"
)

// rule is a phrase that texts avoid.
type rule struct {
	name    string
	hint    string // every phrase contains it, in lower case: the others are passed over quickly
	phrase  string // a regular expression; white space in texts is one space
	unless  string // phrases that match this one as well are left alone; "" for none
	instead string // what to write
	bad     string // has the phrase
	good    string // comes close, and is plain English
}

// sentence matches the beginning of a sentence.
const sentence = `(?:^|[.:!?;…] |\*\*|[>|"“(] ?|^[-#*0-9.]+ )`

var rules = []rule{
	{
		name:    "is no X",
		hint:    " no ",
		phrase:  `(?i)\b(?:(?:there|nor|neither)(?: [a-z]+)? )?(?:is|are|was|were|be|been|being) no [a-z]+`,
		unless:  `(?i)^there |no (?:longer|more|less|fewer|better|worse|later|earlier|larger|smaller|one)$`,
		instead: `"is not an X": no negates a thing that there might be, not what a thing is`,
		bad:     "the answer is no JSON",
		good:    "There is no server, and the tool is no longer offered: it is not JSON.",
	},
	{
		name:    "is none",
		hint:    "none",
		phrase:  `(?i)\b(?:(?:there|it|which) )?(?:is|are|was|were) none\b(?: of)?`,
		unless:  `(?i)^there | of$`,
		instead: `name the thing: "is not a setting", "every error response"`,
		bad:     "the body of every answer that is none",
		good:    "Without a setting there is none, and none of them waits.",
	},
	{
		name:    "there is no such",
		hint:    "such",
		phrase:  `(?i)\bthere (?:is|are|was|were) no such\b|\bno such [a-z]+ (?:is|was) there\b`,
		instead: `"session not found", "no session has this id"`,
		bad:     "there is no such session",
		good:    "open x: no such file or directory",
	},
	{
		name:    "any more",
		hint:    "more",
		phrase:  `(?i)\bany ?more\b(?: than\b)?`,
		unless:  ` than$`,
		instead: `"no longer"`,
		bad:     "it is not there any more",
		good:    "It is no longer there, and costs no more than before.",
	},
	{
		name:    "anew",
		hint:    "anew",
		phrase:  `(?i)\banew\b`,
		instead: `"again", "from the start", or the verb: "rebuild"`,
		bad:     "the list is loaded anew",
		good:    "The list is loaded again, from a new connection.",
	},
	{
		name:    "by now",
		hint:    "by now",
		phrase:  `(?i)\bby now\b`,
		instead: `nothing, "already" or "since"`,
		bad:     "it has ended by now",
		good:    "It has already ended; by noon there will be another.",
	},
	{
		name:    "clause as subject",
		hint:    "wh",
		phrase:  sentence + `(?:What|Who|Whoever|Whatever) [a-z'’-]+ [^.?!|]*[.?!]?`,
		unless:  `\?$|[^.]$`, // questions, and headings
		instead: `begin with the thing that acts: "the server refused …", "a client that …"`,
		bad:     "What is sent is counted.",
		good:    "The client counts what it sends. What is a tape?",
	},
	{
		name:    "clause as subject after an id",
		hint:    ": wh",
		phrase:  `\b[A-Z]+[0-9]*-[0-9]+: (?:what|who|whoever|whose) [a-z'’-]+`,
		instead: `the thing that acts: "UP-40: names from a client …", "TW-14: a client that …"`,
		bad:     "UP-40: what a client names goes into headers encoded.",
		good:    "UP-40: names from a client go into headers encoded.",
	},
	{
		name:    "is what",
		hint:    " what ",
		phrase:  `^(?://+ )?[A-Za-z]+ (?:is|are) what [a-z'’-]+`,
		unless:  `(?i)^(?://+ )?(?:that|this|it|which|ours) `,
		instead: `"holds", "returns", "lists" or a noun: "Called is the result of a tool call"`,
		bad:     "Called is what a call of a tool has come to.",
		good:    "Called is the result of a tool call. That is what clients see.",
	},
	{
		name:    "told of",
		hint:    " told of",
		phrase:  `(?i)\b(?:is|are|was|were|be|been) told of\b`,
		instead: `"learns of", "gets", "is reported"`,
		bad:     "the client is told of the cancellation",
		good:    "The client learns of the cancellation.",
	},
	{
		name:    "let in, let out",
		hint:    "let",
		phrase:  `(?i)\blet(?:s|ting)? (?:(?:(?:an?|the|one|other|no|any|every|its|his|their)(?: [a-z]+)?|it|them|him|others|devices|strangers|people|nobody|somebody|everybody) )?(?:in|out)\b(?: (?:of|the|an?|this|its|their|every|each)\b)?`,
		unless:  `(?i) (?:of|the|an?|this|its|their|every|each)$`,
		instead: `"approve", "admit" or "enroll"; "reject" or "revoke"`,
		bad:     "Let a device in that waits",
		good:    "Approve a waiting device; let the program run in a sandbox.",
	},
	{
		name:    "also before a clause",
		hint:    "also",
		phrase:  `, also (?:at|on|in|when|if|after|before|over|by|with|without|from|while|those|that|through|under)\b`,
		instead: `"even" or "including", or begin the clause with a verb: "it also …"`,
		bad:     "a token is needed, also on this machine",
		good:    "A token is needed, even on this machine. It also ends.",
	},
	{
		name:    "also at the end",
		hint:    "also",
		phrase:  `(?i)\balso(?:[.;:!?]|$)`,
		instead: `"also" before the verb, or "too"`,
		bad:     "the server is asked also.",
		good:    "The server is also asked.",
	},
	{
		name:    "neither at the end",
		hint:    "neither",
		phrase:  `(?i)[a-z)]+ neither(?:[.;]|$)`,
		unless:  `(?i)(?:is|was|are|were|does|do|did|has|have|want|or) neither`,
		instead: `"nor …", or "… either"`,
		bad:     "It is not printed raw, in JSON neither.",
		good:    "It is not printed raw, in JSON either. It is neither.",
	},
	{
		name:    "inside of, outside of",
		hint:    "side of",
		phrase:  `(?i)\b(?:in|out)side of\b`,
		instead: `"inside", "outside"`,
		bad:     "outside of the home folder",
		good:    "outside the home folder",
	},
	{
		name:    "belong into",
		hint:    "belong",
		phrase:  `(?i)\bbelong(?:s|ed)? into\b`,
		instead: `"belongs in"; of data, "do not send … in …"`,
		bad:     "a token does not belong into a URL",
		good:    "do not send tokens in the URL",
	},
	{
		name:    "of before, of now",
		hint:    " of ",
		phrase:  `\b(?:as )?of (?:before|now)\b`,
		unless:  `^as `,
		instead: `"the earlier …", "the present …"`,
		bad:     "the log of before is kept",
		good:    "The earlier log is kept, as of now; most of it dates from before the upgrade.",
	},
	{
		name:    "for ever",
		hint:    "for ever",
		phrase:  `(?i)\bfor ever\b`,
		instead: `"forever", "permanently", "indefinitely"`,
		bad:     "the key stays for ever",
		good:    "The key stays permanently, for every device.",
	},
	{
		name:    "half of the calls",
		hint:    "half of",
		phrase:  `(?i)\bhalf of (?:the|all|its) (?:calls|requests|answers|turns)\b`,
		instead: `"median"`,
		bad:     "Half of the calls within",
		good:    "Median latency; half of the budget",
	},
	{
		name:    "set-up, log on",
		phrase:  `(?i)\bset-up\b|\blog(?:ged|ging)? on to\b`,
		instead: `"setup" is the noun, "set up" the verb; "sign in"`,
		bad:     "it needs no set-up",
		good:    "It needs no setup. Set up a device and sign in.",
	},
	{
		name:    "words of contracts",
		phrase:  `(?i)\b(?:thereby|hereby|therefore|therein|thereof|thereupon|thereto|whereby|wherein|whereupon|henceforth|hence|whilst|amongst)\b`,
		instead: `"so", "by that", "while", "among", or a new sentence`,
		bad:     "and thereby ends it",
		good:    "and so ends it, while others wait",
	},
	{
		name:    "of the … of the … of the",
		hint:    " of the",
		phrase:  `(?i)\bof the(?: [a-z'-]+){1,2} of the(?: [a-z'-]+){1,2} of\b`,
		instead: `a possessive, a compound noun or two sentences`,
		bad:     "the end of the list of the tools of the server",
		good:    "the end of the server's tool list",
	},
}

// compiled is a rule as it is looked for.
type compiled struct {
	rule

	re, unless *regexp.Regexp
}

func compile(r rule) compiled {
	c := compiled{rule: r, re: regexp.MustCompile(r.phrase)}
	if r.unless != "" {
		c.unless = regexp.MustCompile(r.unless)
	}
	return c
}

// find returns where text has the phrase: the offset of each, and the phrase.
func (c compiled) find(text string) (at []int, phrases []string) {
	if !strings.Contains(strings.ToLower(text), c.hint) {
		return nil, nil
	}
	for _, m := range c.re.FindAllStringIndex(text, -1) {
		if phrase := text[m[0]:m[1]]; c.unless == nil || !c.unless.MatchString(phrase) {
			at, phrases = append(at, m[0]), append(phrases, strings.TrimLeft(phrase, ".:!?;… *>|\"“(#-"))
		}
	}
	return at, phrases
}

// COD-7: each rule finds its bad example and leaves its good one alone, as do all others.
func TestRules(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if r.name == "" || names[r.name] || r.instead == "" {
				t.Errorf("rule %q is unnamed, named twice or without a remedy: %q", r.name, r.instead)
			}
			names[r.name] = true
			if _, got := compile(r).find(r.bad); len(got) != 1 {
				t.Errorf("find(%q) = %q, want one phrase", r.bad, got)
			}
			for _, other := range rules {
				if _, got := compile(other).find(r.good); len(got) != 0 {
					t.Errorf("rule %q: find(%q) = %q, want nothing", other.name, r.good, got)
				}
			}
		})
	}
}
