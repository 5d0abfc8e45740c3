package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/internal/netaddr"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/models"
)

const (
	modelsSource  = "models.source"
	modelsFile    = "models.json"
	modelsTimeout = time.Minute
)

// sourceSetting refuses a source of the list of models that could not be asked.
func sourceSetting(key string, v json.RawMessage) error {
	if key != modelsSource {
		return nil
	}
	var source string
	if err := json.Unmarshal(v, &source); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	u, err := url.Parse(source)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && (u.Scheme != "http" || !netaddr.Loopback(u.Hostname()))) {
		return fmt.Errorf("%s must be an https URL without a password, such as %s", key, models.Source)
	}
	return nil
}

// modelList is the catalogue of models with the newer list that the data directory may have. It
// implements [admin.Models].
type modelList struct {
	catalogue *models.Catalogue
	data      *os.Root
	settings  *config.Store
}

// openModels reads the list of the data directory. One that cannot be read is an error, and then
// the list that comes with yaya counts.
func openModels(data *os.Root, settings *config.Store) (*modelList, error) {
	m := &modelList{new(models.Catalogue), data, settings}
	f, err := data.Open(modelsFile)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, models.MaxList+1)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return m, err
	}
	list, err := models.Parse(raw)
	if err == nil {
		err = m.catalogue.Use(list)
	}
	if err != nil {
		return m, fmt.Errorf("%s (yaya provider refresh replaces it): %w", modelsFile, err)
	}
	return m, nil
}

// WithModels runs f with the catalogue of models of the daemon, or of this process if none runs, which
// writes warnings.
func WithModels(ctx context.Context, g *Flags, warnings io.Writer, f func(*Backend) error) error {
	return WithStore(ctx, g, f, func(_ Paths, data *os.Root, settings *config.Store) (admin.Config, error) {
		m, err := openModels(data, settings) // which a daemon logs, and a refresh repairs
		if err != nil {
			fmt.Fprintln(warnings, "yaya:", err)
		}
		return admin.Config{Settings: settings, Models: m}, nil
	})
}

// List implements [admin.Models].
func (m *modelList) List() models.List { return m.catalogue.List() }

// Refresh implements [admin.Models].
func (m *modelList) Refresh(ctx context.Context) (models.List, error) {
	source := m.settings.Text(modelsSource)
	raw, err := fetchModels(ctx, source)
	if err != nil {
		return models.List{}, api.Fail(http.StatusBadGateway, "the list of models at %s (setting %s): %v", source, modelsSource, err)
	}
	list, err := models.Convert(raw, source, time.Now().UTC().Format(time.DateOnly))
	if err != nil {
		return models.List{}, api.Fail(http.StatusBadGateway, "%s (setting %s): %v", source, modelsSource, err)
	}
	kept, err := json.Marshal(list)
	if err != nil {
		return models.List{}, err
	}
	if _, err := models.Parse(kept); err != nil { // or the next start could not read it
		return models.List{}, api.Fail(http.StatusBadGateway, "%s: %v", source, err)
	}
	if _, err := atomicfile.Write(m.data, modelsFile, kept); err != nil {
		return models.List{}, fmt.Errorf("store the list of models: %w", err)
	}
	if err := m.catalogue.Use(list); err != nil {
		return models.List{}, err
	}
	return m.List(), nil
}

func fetchModels(ctx context.Context, source string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, modelsTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, err
	}
	client := llmhttp.New()
	defer client.Close()
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, models.MaxSource+1)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return nil, err
	}
	return raw, nil
}

var _ admin.Models = (*modelList)(nil)
