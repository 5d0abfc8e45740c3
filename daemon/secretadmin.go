package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/keychain"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/oauth"
)

// openVault returns the secrets of a data folder that is open. The keychain has the key of
// the default data folder alone: another one belongs to another installation, a container
// or a test, and has its key beside its configuration.
func (g *Flags) openVault(p Paths, data *os.Root) *secrets.Store {
	o := secrets.Options{Data: data, KeyDir: p.Config, Passphrase: Passphrase(), Learn: g.learnSecrets}
	if self, err := os.Executable(); err == nil && g.DataDir == "" {
		o.Keychain = keychain.Client{Program: self}
	}
	return secrets.New(o)
}

// learnSecrets makes stored values known, all at once: what finds them is made again for
// each call. One that the user has stored himself is concealed whatever it is; a key that
// the settings had may be a placeholder.
func (g *Flags) learnSecrets(values map[string]string) {
	var common, declared []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		stowed := strings.HasPrefix(name, "providers.") || strings.HasPrefix(name, "plugin.")
		if stowed && masked.Common(values[name]) {
			common = append(common, values[name])
		} else {
			declared = append(declared, values[name])
		}
	}
	g.Secrets.Learn(common...)
	g.Secrets.Declare(declared...)
}

// knowPatience is how long the first server waits until the stored secrets are known: a
// keychain answers sooner, unless somebody has to unlock it.
const knowPatience = 2 * time.Second

// knowSecrets reads the stored secrets aside, so that those that nothing refers to are
// hidden, too. Await returns when they are known, or after a while: the key may lie in a
// keychain that hangs. End stops the reading and waits for it.
func (g *Flags) knowSecrets(ctx context.Context, log zerolog.Logger) (await, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := g.Vault.Load(ctx); err != nil && ctx.Err() == nil {
			log.Error().Err(err).Msg("stored secrets cannot be read: what refers to one does not start, and they are not hidden in what programs say")
		}
	}()
	await = func() {
		late := time.NewTimer(knowPatience)
		defer late.Stop()
		select {
		case <-done:
		case <-ctx.Done():
		case <-late.C:
			log.Warn().Msg("servers start before the stored secrets are known: the keychain or the passphrase has not answered yet")
		}
	}
	return await, func() { cancel(); <-done }
}

// secretsDiagnosis says where the key of the secrets lies, and whether it opens them.
func secretsDiagnosis(ctx context.Context, store *secrets.Store, timeout time.Duration) (d plugin.Diagnosis, sealed bool) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(timeout, plugin.DefaultCheckTimeout))
	defer cancel()
	key, err := store.Kind()
	if err == nil && key == "" {
		return plugin.Diagnosis{}, false
	}
	if err == nil {
		err = store.Load(ctx)
	}
	h := plugin.HealthReport{Status: plugin.Healthy, Summary: secrets.SealedWith(key)}
	if err != nil {
		h = plugin.HealthReport{Status: plugin.Failing, Summary: err.Error()}
	}
	return plugin.Diagnosis{Plugin: "secrets", HealthReport: h}, true
}

// sealSecrets moves what an earlier yaya has kept in the clear into the sealed file: keys
// of providers and plugins that were set, and what servers have granted. A secret that it
// cannot move stays as it is, is used, and is logged; the next start tries again. It
// reports how many it moved. Several processes may do it at the same time.
func (g *Flags) sealSecrets(data *os.Root, settings *config.Store, log zerolog.Logger) (moved int) {
	keys, err := settings.StowSecrets()
	grants := oauth.NewStore(data, g.Vault)
	grants.Learn = g.Secrets.Declare
	n, gerr := grants.Migrate()
	if err = errors.Join(err, gerr); err != nil {
		log.Error().Err(err).Msg("secrets lie in the data folder in the clear, as an earlier yaya has kept them, and could not be sealed")
	}
	return len(keys) + n
}

// vault is the secrets as settings keep them.
type vault struct{ *secrets.Store }

// Set implements [config.Vault].
func (v vault) Set(name, value string) error {
	if err := errors.Join(secrets.CheckName(name), secrets.CheckValue(value)); err != nil {
		return fmt.Errorf("%w: %w", config.ErrUnfit, err)
	}
	_, err := v.Store.Set(name, value)
	return err
}

// Remove implements [config.Vault].
func (v vault) Remove(name string) error {
	_, err := v.Store.Remove(name)
	return err
}

// secretAdmin stores secrets for the admin API. Without running servers, it works
// on the file alone.
type secretAdmin struct {
	store    *secrets.Store
	settings *config.Store
	manager  *manage.Manager
}

// List implements [admin.Secrets].
func (s *secretAdmin) List() (admin.SecretList, error) {
	all, err := s.store.List()
	if err != nil {
		return admin.SecretList{}, storeError(err)
	}
	out := admin.SecretList{Secrets: []admin.Secret{}}
	if out.Key, err = s.store.Kind(); err != nil {
		return admin.SecretList{}, storeError(err)
	}
	uses := s.uses()
	for _, x := range all {
		out.Secrets = append(out.Secrets, admin.Secret{Name: x.Name, Set: x.Set, Uses: append([]string{}, uses[x.Name]...)})
		delete(uses, x.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		out.Secrets = append(out.Secrets, admin.Secret{Name: name, Uses: uses[name]})
	}
	return out, nil
}

// uses returns what refers to each secret.
func (s *secretAdmin) uses() map[string][]string {
	out := map[string][]string{}
	for _, x := range s.manager.All() {
		for _, name := range x.SecretNames() {
			out[name] = append(out[name], "server "+x.Name)
		}
	}
	for name, keys := range s.settings.References() {
		for _, key := range keys {
			out[name] = append(out[name], "setting "+key)
		}
	}
	return out
}

// Check implements [admin.Secrets].
func (s *secretAdmin) Check(name, value string) error {
	if err := errors.Join(secrets.CheckName(name), secrets.CheckValue(value)); err != nil {
		return storeError(err)
	}
	return nil
}

// Set implements [admin.Secrets].
func (s *secretAdmin) Set(ctx context.Context, name, value string) (admin.SecretSet, error) {
	waited := s.manager.Without(name)
	replaced, err := s.store.Set(name, value)
	if err != nil {
		return admin.SecretSet{}, storeError(err)
	}
	out := admin.SecretSet{Replaced: replaced}
	out.Restarted, err = s.changed(ctx, name)
	// One that waited for the value may have been started before it was looked at.
	out.Restarted = append(out.Restarted, waited...)
	slices.Sort(out.Restarted)
	out.Restarted = slices.Compact(out.Restarted)
	if err != nil {
		return out, err
	}
	if out.Key, err = s.store.Kind(); err != nil {
		return out, storeError(err)
	}
	return out, nil
}

// storeError makes an error one that the API's caller reads: a name or a value that cannot be
// is his mistake; a file, a key or a disk is not, and the remedy is in the text, since the
// caller is the user that runs yaya.
func storeError(err error) error {
	kind := admin.ErrFailed
	if _, ok := errors.AsType[*secrets.Unfit](err); ok {
		kind = admin.ErrRefused
	}
	return &told{kind, err.Error()}
}

// Remove implements [admin.Secrets].
func (s *secretAdmin) Remove(ctx context.Context, name string) (admin.SecretRemoved, error) {
	found, err := s.store.Remove(name)
	if err != nil {
		return admin.SecretRemoved{}, storeError(err)
	}
	if !found {
		return admin.SecretRemoved{}, &told{admin.ErrUnknown, fmt.Sprintf("there is no secret %q", name)}
	}
	if _, err := s.changed(ctx, name); err != nil {
		return admin.SecretRemoved{}, err
	}
	return admin.SecretRemoved{Uses: append([]string{}, s.uses()[name]...)}, nil
}

// changed has those that refer to a secret take its value over, and returns the servers
// among them.
func (s *secretAdmin) changed(ctx context.Context, name string) ([]string, error) {
	return s.manager.SecretChanged(ctx, name), s.settings.SecretChanged(name)
}

// KeyInData says that the key lies in the data folder, "" if it does not.
func KeyInData(p Paths) string {
	rel, err := filepath.Rel(p.Data, p.Config)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return ""
	}
	return fmt.Sprintf("the key of the secrets lies in the data folder, since --config-dir %s does: who copies the folder has both", p.Config)
}
