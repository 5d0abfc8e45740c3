//go:build !linux

package sandbox

import "github.com/yaya-ai/yaya/internal/sandbox/inside"

func hideMachine(*Policy, *rules, *inside.Plan, int) error { return nil }

func (*Run) hideSockets(*rules, *inside.Plan) error { return nil }
