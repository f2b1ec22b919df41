# For Homebrew, from the programs of a release. build.sh fills in the version and the sums.
class Locktop < Formula
  desc "Top for PostgreSQL locks, leases and the tasks that depend on them"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@HOMEPAGE@/releases/download/v@VERSION@/locktop-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256 locktop-@VERSION@-aarch64-apple-darwin.tar.gz@"
    end
    on_intel do
      url "@HOMEPAGE@/releases/download/v@VERSION@/locktop-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256 locktop-@VERSION@-x86_64-apple-darwin.tar.gz@"
    end
  end

  on_linux do
    on_arm do
      url "@HOMEPAGE@/releases/download/v@VERSION@/locktop-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 locktop-@VERSION@-aarch64-unknown-linux-musl.tar.gz@"
    end
    on_intel do
      url "@HOMEPAGE@/releases/download/v@VERSION@/locktop-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 locktop-@VERSION@-x86_64-unknown-linux-musl.tar.gz@"
    end
  end

  def install
    bin.install "locktop"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/locktop.bash" => "locktop"
    zsh_completion.install "completions/_locktop"
    fish_completion.install "completions/locktop.fish"
    doc.install "README.md", "CHANGELOG.md", "contrib"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/locktop --version")
    assert_match "[thresholds]", shell_output("#{bin}/locktop config print")
  end
end
