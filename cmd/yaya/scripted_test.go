package main

import "encoding/json"

// scenarios gives the model that is built in what it says.
func (b *box) scenarios(all ...map[string]any) {
	b.t.Helper()
	raw, err := json.Marshal(all)
	if err != nil {
		b.t.Fatal(err)
	}
	b.script(string(raw))
}

// callsFor has the model that is built in call tools one after the other, for what is said.
func callsFor(say string, calls ...map[string]any) map[string]any {
	steps := []any{}
	for _, c := range calls {
		steps = append(steps, map[string]any{"tool_calls": []any{c}})
	}
	return map[string]any{"match": "^" + say, "steps": append(steps, map[string]any{"text": "done"})}
}

func shellCall(command string, more ...string) map[string]any {
	args := map[string]any{"command": command}
	if len(more) > 0 {
		args["outside"], args["reason"] = true, more[0]
	}
	return map[string]any{"name": "shell", "args": args}
}
