//! Servers that send more than any PostgreSQL server does: the program disconnects, reports the reason, and
//! stays small.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::binary::{Left, locktop};
use crate::support::{is_long, server};

/// The limit of the program's memory, in MB.
const MOST: u64 = 64;

/// Longest run of a program that connects again each time.
const LIMIT: Duration = Duration::from_secs(8);

/// Longest run of a program that ends by its own time limits; on a busy machine they fire late.
const OWN_END: Duration = Duration::from_secs(60);

/// A message with the length that it claims.
fn message(kind: u8, length: u32, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

fn whole(kind: u8, body: &[u8]) -> Vec<u8> {
    message(kind, u32::try_from(body.len() + 4).unwrap(), body)
}

/// The messages of a server up to the end of the login.
fn login() -> Vec<u8> {
    [whole(b'R', &[0; 4]), whole(b'S', b"server_version\x0017.0\0"), whole(b'K', &[0; 8]), whole(b'Z', b"I")]
        .concat()
}

/// A server that answers each connection with `first`, and then sends `rest` forever. It answers a request
/// for TLS in the same way if `answers_tls`, and with no otherwise.
fn flood(first: Vec<u8>, rest: Vec<u8>, answers_tls: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pour = move |mut stream: TcpStream, first: &[u8], rest: &[u8]| -> std::io::Result<()> {
        let mut asked = [0; 8];
        stream.read_exact(&mut asked)?;
        if asked[4..] == [0x04, 0xd2, 0x16, 0x2f] && !answers_tls {
            stream.write_all(b"N")?;
            let _ = stream.read(&mut [0; 4096])?;
        }
        stream.write_all(first)?;
        let many = rest.repeat((1 << 16) / rest.len() + 1);
        loop {
            stream.write_all(&many)?;
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (first, rest) = (first.clone(), rest.clone());
            std::thread::spawn(move || pour(stream, &first, &rest));
        }
    });
    port
}

/// Forwards all data between a client and a real server, until the server sends message number `count` of a
/// kind: that message is repeated forever.
fn repeating(socket: PathBuf, kind: u8, count: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let back = move |mut server: UnixStream, mut client: TcpStream| -> std::io::Result<()> {
        let mut seen = 0;
        loop {
            let mut head = [0; 5];
            server.read_exact(&mut head)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut all = head.to_vec();
            all.resize(1 + length, 0);
            server.read_exact(&mut all[5..])?;
            seen += usize::from(head[0] == kind);
            let many = all.repeat((1 << 16) / all.len() + 1);
            if seen == count {
                loop {
                    client.write_all(&many)?;
                }
            }
            client.write_all(&all)?;
        }
    };
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let Ok(mut server) = UnixStream::connect(&socket) else { return };
            let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = back(from, to.try_clone().unwrap());
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut client, &mut server);
                let _ = server.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    port
}

/// Runs a program to its end, or up to the limit; returns its peak memory too, in MB.
pub(crate) fn watched(mut command: Command, limit: Duration) -> (Left, u64) {
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let start = locktop::clock::monotonic();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(size.unwrap_or_default() >> 10);
        if start.elapsed() > limit || peak > 4 * MOST {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    (child.wait_with_output().unwrap().into(), peak)
}

/// Every command that connects once, with the arguments it needs in addition to the target.
const COMMANDS: [&[&str]; 7] = [
    &["snapshot", "--format", "json"],
    &["check"],
    &["adapters", "list"],
    &["schema", "status"],
    &["recover", "--yes"],
    &["lock-of", "SELECT 1 FROM t", "postgres"],
    &["snapshot", "--watch=0.1s", "--count", "50", "--format", "json"],
];

/// Runs a command that waits for `patience` seconds for its connection.
fn run(line: &[&str], port: u16, patience: &str) -> (Left, u64) {
    let mut command = locktop(&[&["-w"], line].concat());
    command.env("PGHOST", "127.0.0.1").env("PGPORT", port.to_string()).env("PGUSER", "postgres");
    command.env("PGDATABASE", "postgres").env("PGCONNECT_TIMEOUT", patience);
    let is_endless = line.iter().any(|word| ["--watch=0.1s", "worker"].contains(word));
    watched(command, if is_endless { LIMIT } else { OWN_END })
}

fn stays_small(name: &str, line: &[&str], port: u16) -> Left {
    small_for(name, line, port, "2")
}

fn small_for(name: &str, line: &[&str], port: u16, patience: &str) -> Left {
    let (left, peak) = run(line, port, patience);
    assert!(peak <= MOST, "{name}, {line:?}: {peak} MB; {}", left.err);
    println!("{name}, {line:?}: {peak} MB, {:?} {}", left.status, left.err.trim());
    left
}

#[test]
fn before_login_no_message_is_larger_than_libpq_reads() {
    let zeros = vec![0; 1 << 16];
    let sasl = [&10_u32.to_be_bytes()[..], &vec![b'x'; 1 << 16]].concat();
    let modes: [(&str, Vec<u8>, Vec<u8>, &str); 7] = [
        ("a request of 2 GB", message(b'R', 2_000_000_000, &[]), zeros.clone(), "2000 are read before login"),
        ("SASL of 2 GB", message(b'R', 1_900_000_000, &sasl), zeros.clone(), "2000 are read before login"),
        (
            "an error of 2 GB",
            message(b'E', 2_000_000_000, b"S"),
            zeros.clone(),
            "30000 are read before login",
        ),
        ("errors", Vec::new(), whole(b'N', &vec![b'S'; 20_000]), "before login"),
        ("settings", whole(b'R', &[0; 4]), whole(b'S', b"a\0b\0"), "1 MB before login"),
        ("notices", whole(b'R', &[0; 4]), whole(b'N', b"SWARNING\0Mx\0\0"), "1 MB before login"),
        (
            "a setting of 2 GB",
            [whole(b'R', &[0; 4]), message(b'S', 2_000_000_000, b"a\0")].concat(),
            zeros,
            "30000 are",
        ),
    ];
    for (number, (name, first, rest, expected)) in modes.into_iter().enumerate() {
        for answers_tls in [false, true] {
            let port = flood(first.clone(), rest.clone(), answers_tls);
            let line = COMMANDS[(number * 2 + usize::from(answers_tls)) % COMMANDS.len()];
            // Long enough to read the data that is refused.
            let left = small_for(name, line, port, "30");
            assert!(left.status != Some(0), "{name}: {left:?}");
            let is_reported = left.err.contains(expected) || left.out.contains(expected);
            assert!(answers_tls || number == 3 || is_reported, "{name} {line:?}: {left:?}");
        }
    }
}

#[test]
fn after_login_no_answer_is_endless() {
    let columns = [&1_u16.to_be_bytes()[..], b"a\0", &[0; 18]].concat();
    let row = whole(b'D', &[&1_u16.to_be_bytes()[..], &4_u32.to_be_bytes(), b"1234"].concat());
    let zeros = vec![0; 1 << 16];
    let after = |more: &[u8]| [login(), more.to_vec()].concat();
    let setting: Vec<u8> =
        (0..5000).flat_map(|number| whole(b'S', format!("x{number}\0y\0").as_bytes())).collect();
    let modes: [(&str, Vec<u8>, Vec<u8>); 8] = [
        ("rows", after(&whole(b'T', &columns)), row),
        (
            "a field of 1 GB",
            after(&[whole(b'T', &columns), message(b'D', 1_000_000_000, &[0, 1])].concat()),
            zeros.clone(),
        ),
        ("a million columns", after(&message(b'T', 2_000_000_000, &[0xff, 0xff])), zeros.clone()),
        ("an error of 2 GB", after(&message(b'E', 2_000_000_000, b"S")), zeros.clone()),
        ("notices", after(&[]), whole(b'N', b"SWARNING\0Mx\0\0")),
        ("notifications", after(&[]), whole(b'A', b"\0\0\0\x01channel\0payload\0")),
        ("settings", after(&[]), setting),
        ("copied data", after(&[whole(b'H', &[0; 3]), message(b'd', 2_000_000_000, &[])].concat()), zeros),
    ];
    for (number, (name, first, rest)) in modes.into_iter().enumerate() {
        let port = flood(first, rest, false);
        for line in [COMMANDS[number % COMMANDS.len()], COMMANDS[(number + 3) % COMMANDS.len()]] {
            let left = stays_small(name, line, port);
            assert!(
                left.status != Some(0) && !(left.err.is_empty() && left.out.is_empty()),
                "{name} {line:?}: {left:?}"
            );
        }
    }
}

/// The program may be in any state when the flood begins.
#[tokio::test]
async fn a_message_that_a_real_server_sends_is_repeated_for_ever() {
    let socket = server().await.socket_dir().join(".s.PGSQL.5432");
    tokio::task::spawn_blocking(move || {
        let mut number = 0;
        for (kind, counts) in
            [(b'd', &[1, 3, 40][..]), (b'D', &[1, 4, 9, 20]), (b'T', &[2, 9]), (b'C', &[3]), (b'Z', &[3])]
        {
            for count in counts {
                let port = repeating(socket.clone(), kind, *count);
                for _ in 0..if is_long() { 2 } else { 1 } {
                    let line = COMMANDS[number % COMMANDS.len()];
                    number += 1;
                    stays_small(&format!("{} {count}", char::from(kind)), line, port);
                }
            }
        }
    })
    .await
    .unwrap();
}

/// Commands that reconnect until they are ended.
#[test]
fn recorders_and_workers_stay_small_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.ltr");
    let file = file.to_str().unwrap();
    let columns = [&1_u16.to_be_bytes()[..], b"a\0", &[0; 18]].concat();
    let row = whole(b'D', &[&1_u16.to_be_bytes()[..], &4_u32.to_be_bytes(), b"1234"].concat());
    for (name, first, rest) in [
        ("a request of 2 GB", message(b'R', 2_000_000_000, &[]), vec![0; 1 << 16]),
        ("rows", [login(), whole(b'T', &columns)].concat(), row),
    ] {
        let port = flood(first, rest, false);
        for line in [&["record", file, "--for", "2s"][..], &["worker", "--id", "w"]] {
            stays_small(name, line, port);
        }
    }
}

/// A Redis server that answers the first `calm` commands with OK, and the next with `rest` forever.
fn redis_flood(calm: usize, first: &'static [u8], rest: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pour = move |mut stream: TcpStream| -> std::io::Result<()> {
        for _ in 0..calm {
            let _ = stream.read(&mut [0; 4096])?;
            stream.write_all(b"+OK\r\n+OK\r\n")?;
        }
        let _ = stream.read(&mut [0; 4096])?;
        stream.write_all(first)?;
        let many = rest.repeat((1 << 16) / rest.len() + 1);
        loop {
            stream.write_all(&many)?;
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || pour(stream));
        }
    });
    port
}

#[tokio::test]
async fn no_answer_of_a_redis_server_is_endless() {
    let socket = server().await.socket_dir().to_owned();
    tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.ltr");
        let modes = [
            ("a string of 2 GB", &b"$2000000000\r\n"[..], &b"x"[..]),
            ("an array of two billion", b"*2000000000\r\n", b":1\r\n"),
            ("arrays in arrays", b"", b"*2\r\n"),
            ("a line", b"+", b"x"),
            ("an error", b"-", b"x"),
            ("answers to nothing", b"", b"+OK\r\n"),
            ("messages", b"", b">2\r\n+a\r\n+b\r\n"),
        ];
        for (number, (name, first, rest)) in modes.into_iter().enumerate() {
            for calm in [0, 2].into_iter().filter(|calm| is_long() || *calm == number % 2 * 2) {
                let url = format!("redis://127.0.0.1:{}", redis_flood(calm, first, rest));
                let record = ["record", file.to_str().unwrap(), "--for", "2s"];
                for line in [&["snapshot", "--format", "json"][..], &record] {
                    let mut command = locktop(&[&["-w", "--redis", &url], line].concat());
                    command.env("PGHOST", &socket).env("PGUSER", "postgres").env("PGDATABASE", "postgres");
                    let (left, peak) = watched(command, LIMIT);
                    assert!(peak <= MOST, "{name}, {line:?}: {peak} MB; {}", left.err);
                    println!("{name}, {line:?}: {peak} MB, {:?} {}", left.status, left.err.trim());
                    let is_reported =
                        left.out.contains("is no Redis server") || left.out.contains("\"error\"");
                    assert!(line[0] == "record" || is_reported, "{name}: {left:?}");
                }
            }
        }
    })
    .await
    .unwrap();
}
