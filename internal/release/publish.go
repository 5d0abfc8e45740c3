//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile has the digest of every other file of the release.
const sumsFile = "checksums.txt"

// sums writes the digests, as sha256sum does.
func (b *builder) sums() error {
	files, err := os.ReadDir(b.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		sum, err := digest(filepath.Join(b.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, f.Name())
	}
	return b.write(sumsFile, []byte(text.String()))
}

func digest(file string) (string, error) {
	data, err := os.ReadFile(file) //nolint:forbidigo,gosec // made here
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// sign signs the digests with the keys that the environment names, if any.
func (b *builder) sign(ctx context.Context) error {
	sums := filepath.Join(b.out, sumsFile)
	if key := os.Getenv("YAYA_RELEASE_MINISIGN_KEY"); key != "" {
		comment := "yaya " + b.commit.version
		if _, err := output(ctx, b.out, "minisign", "-S", "-W", "-s", key, "-t", comment, "-m", sums); err != nil {
			return fmt.Errorf("sign with minisign (YAYA_RELEASE_MINISIGN_KEY names a file with a key without a password): %w", err)
		}
	}
	if key := os.Getenv("YAYA_RELEASE_GPG_KEY"); key != "" {
		if _, err := output(ctx, b.out, "gpg", "--batch", "--yes", "--armor", "--local-user", key, "--detach-sign", sums); err != nil {
			return fmt.Errorf("sign with gpg (YAYA_RELEASE_GPG_KEY names a key in its keyring): %w", err)
		}
	}
	return nil
}

// formula writes the formula of Homebrew, if there is a program for macOS.
func (b *builder) formula() error {
	var text strings.Builder
	fmt.Fprintf(&text, `class Yaya < Formula
  desc "%s"
  homepage "%s"
  version "%s"
  license "MIT"

`, summary, home, b.commit.version)
	for _, system := range []struct{ os, name string }{{"darwin", "macos"}, {"linux", "linux"}} {
		fmt.Fprintf(&text, "  on_%s do\n", system.name)
		for _, cpu := range []struct{ arch, name string }{{"arm64", "arm"}, {"amd64", "intel"}} {
			file := b.name(target{system.os, cpu.arch}, "tar.gz")
			sum, err := digest(filepath.Join(b.out, file))
			if os.IsNotExist(err) {
				return nil // of some targets alone there is no formula
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "    on_%s do\n      url \"%s/releases/download/v%s/%s\"\n      sha256 \"%s\"\n    end\n", cpu.name, home, b.commit.version, file, sum)
		}
		text.WriteString("  end\n\n")
	}
	text.WriteString(`  def install
    bin.install "yaya"
    man1.install "man/yaya.1"
    bash_completion.install "completions/yaya.bash" => "yaya"
    zsh_completion.install "completions/_yaya"
    fish_completion.install "completions/yaya.fish"
  end

  service do
    run [opt_bin/"yaya", "serve", "--no-open"]
    keep_alive successful_exit: false
    log_path var/"log/yaya.log"
    error_log_path var/"log/yaya.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/yaya version")
  end
end
`)
	return b.write("yaya.rb", []byte(text.String()))
}
