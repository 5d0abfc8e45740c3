package agentskill

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Fields reads a file with front matter: its fields, each a text or a list of texts, and the body
// below. A field without a value is an empty list.
func Fields(data []byte) (fields map[string][]string, body string, err error) {
	front, body, err := split(data)
	if err != nil {
		return nil, "", err
	}
	nodes, err := decode(front)
	if err != nil {
		again, ok := quoted(front)
		if !ok {
			return nil, "", err
		}
		if nodes, ok = retried(again); !ok {
			return nil, "", err
		}
	}
	fields = map[string][]string{}
	for name, node := range nodes {
		values := []string{}
		switch {
		case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		case node.Kind == yaml.ScalarNode:
			values = append(values, node.Value)
		case node.Kind == yaml.SequenceNode:
			for _, item := range node.Content {
				if item.Kind != yaml.ScalarNode {
					return nil, "", fmt.Errorf("%s has an element that is not a text", shown(name))
				}
				values = append(values, item.Value)
			}
		default:
			return nil, "", fmt.Errorf("%s is neither a text nor a list of texts", shown(name))
		}
		fields[name] = values
	}
	return fields, body, nil
}
