package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of a look for services of models on this machine.
const (
	localWait   = time.Second
	localAnswer = 256 << 10 // bytes
	localModels = 100
	localName   = 200 // bytes of a model's name
)

// LocalModels is a service of models that runs on this machine.
type LocalModels struct {
	Name   string   `json:"name"`
	URL    string   `json:"url" doc:"base URL for a provider"`
	Models []string `json:"models"`
}

// lookForModels asks the services at once for their models, and returns those that answer.
func lookForModels(ctx context.Context, services map[string]string) []LocalModels {
	ctx, cancel := context.WithTimeout(ctx, localWait)
	defer cancel()
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // without the proxies of the environment
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	out := []LocalModels{}
	for name, base := range services {
		work.Go(func() {
			models, ok := modelsAt(ctx, client, base)
			if !ok {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, LocalModels{name, base, models})
		})
	}
	work.Wait()
	slices.SortFunc(out, func(a, b LocalModels) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// modelsAt lists the models of a service that is like OpenAI's, false if there is none.
func modelsAt(ctx context.Context, client *http.Client, base string) ([]string, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, false
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, false // nothing listens there, most likely
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, localAnswer)).Decode(&list) != nil {
		return nil, false
	}
	models := []string{}
	for _, m := range list.Data {
		if m.ID != "" && len(m.ID) <= localName && len(models) < localModels {
			models = append(models, m.ID)
		}
	}
	return models, true
}
