package stock

import (
	"encoding/json"
	"testing"
)

func TestJSON(t *testing.T) {
	counts := map[string]int{"tea": 0, "milk": 3}
	for article, want := range map[string]string{"tea": `{"article":"tea","count":0}`, "milk": `{"article":"milk","count":3}`, "salt": `{"article":"salt"}`} {
		s := Of(article, counts)
		if (s.Count == nil) != (article == "salt") {
			t.Errorf("%s: Count is %v", article, s.Count)
		}
		if got, err := json.Marshal(s); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
