package models

// Choice is a model that can be chosen for a session.
type Choice struct {
	ID       string `json:"id" doc:"the id of its provider, or ID/MODEL"`
	Provider string `json:"provider" doc:"id"`
	Label    string `json:"label,omitempty" doc:"of the provider"`
	Model    string `json:"model,omitempty" doc:"that answers; empty if the provider does not say"`
	Active   bool   `json:"active" doc:"sessions without a model of their own have it"`
	Window   int    `json:"context_window" doc:"tokens, as far as yaya knows"`
}
