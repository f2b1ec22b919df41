# `just` lists these; each is one command that also works without just.

# The program over an embedded server.
demo *options:
    cargo run -- demo {{options}}

# What needs no server.
quick:
    cargo test --workspace --lib
    cargo test --test offline

# One suite or test: just test server action::steps
test suite *filter:
    cargo test --test {{suite}} {{filter}}

# All tests.
all:
    tests/run.sh

# What a change has to pass.
ci:
    .ci/run

# Packages, as a release has them, and what proves them.
packages:
    packaging/build.sh all
    packaging/test.sh

# Screens of the tests, written anew.
accept:
    LOCKTOP_ACCEPT=1 cargo test --lib ui::tests

# Pictures of the manual.
pictures:
    LOCKTOP_PICTURE=1 cargo test --test terminal picture
