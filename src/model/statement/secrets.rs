//! Whether a statement mentions a secret: by its words, since only the server knows what is in its strings.

struct Sign {
    text: &'static str,
    at: Place,
    /// A word that must also be in the text.
    with: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Any,
    /// As a part of a name: `db_pwd`, `userPwd`.
    Part,
    Word,
}

const fn any(text: &'static str) -> Sign {
    Sign { text, at: Place::Any, with: None }
}

const fn part(text: &'static str) -> Sign {
    Sign { text, at: Place::Part, with: None }
}

const fn both(text: &'static str, with: &'static str) -> Sign {
    Sign { text, at: Place::Word, with: Some(with) }
}

/// Signs that there is a secret, or may be one: options of servers and user mappings, programs of COPY, server settings and
/// arguments of prepared statements have no telling names.
const SIGNS: [Sign; 51] = [
    any("passw"),
    any("passphrase"),
    any("passcode"),
    any("pgpass"),
    any("secret"),
    any("token"),
    any("crypt"),
    any("credential"),
    any("bearer"),
    any("scram-sha"),
    any("conninfo"),
    any("apikey"),
    any("api_key"),
    any("api-key"),
    any("accesskey"),
    any("access_key"),
    any("access-key"),
    any("privatekey"),
    any("private_key"),
    any("signing_key"),
    any("master_key"),
    any("pgp_"),
    any("hmac"),
    any("authorization"),
    any("jwt"),
    any("kennwort"),
    any("wachtwoord"),
    any("contrase"),
    any("арол"),
    any("密码"),
    any("密碼"),
    // A name written in Unicode escapes.
    any("u&\""),
    part("senha"),
    part("vault"),
    part("pass"),
    part("pw"),
    part("pwd"),
    part("pwhash"),
    part("psw"),
    part("pin"),
    part("otp"),
    part("cred"),
    part("creds"),
    part("digest"),
    Sign { text: "execute", at: Place::Word, with: None },
    both("program", "copy"),
    both("mapping", "user"),
    both("options", "server"),
    both("options", "foreign"),
    both("subscription", "connection"),
    both("system", "alter"),
];

/// A bit set of the first three bytes of the signs, in lower case: nothing else is examined in most texts.
#[allow(clippy::indexing_slicing, reason = "while it is compiled")]
const BEGINNINGS: [u64; 64] = {
    let mut bits = [0; 64];
    let mut at = 0;
    while at < SIGNS.len() {
        let bytes = SIGNS[at].text.as_bytes();
        // Shorter signs are searched separately.
        if bytes.len() > 2 {
            let bit = bit_of(window(window(window(0, bytes[0]), bytes[1]), bytes[2]));
            bits[bit / 64] |= 1 << (bit % 64);
        }
        at += 1;
    }
    bits
};

/// The only sign of two bytes.
const PW: u32 = 0x7077;

/// The last three bytes, ignoring case.
const fn window(before: u32, byte: u8) -> u32 {
    ((before << 8) | (byte | 0x20) as u32) & 0xff_ffff
}

const fn bit_of(window: u32) -> usize {
    (window.wrapping_mul(0x9e37_79b1) >> 20) as usize
}

/// Whether `is_it` accepts any of the signs in a text. One pass, at two nanoseconds per byte.
fn any_sign(text: &str, mut is_it: impl FnMut(usize, &Sign) -> bool) -> bool {
    let bytes = text.as_bytes();
    let mut last = 0;
    for (at, byte) in bytes.iter().enumerate() {
        last = window(last, *byte);
        let bit = bit_of(last);
        let is_beginning = BEGINNINGS.get(bit / 64).is_some_and(|bits| bits >> (bit % 64) & 1 == 1);
        if !is_beginning && last & 0xffff != PW {
            continue;
        }
        let is_found = |(number, sign): (usize, &Sign)| {
            let begin = (at + 1).checked_sub(sign.text.len().min(3));
            begin.is_some_and(|begin| sign.is_at(bytes, begin)) && is_it(number, sign)
        };
        if SIGNS.iter().enumerate().any(is_found) {
            return true;
        }
    }
    false
}

pub fn speaks_of_secret(text: &str) -> bool {
    // The second word is searched for only once, however often the first one occurs.
    let mut half = 0_u64;
    let is_whole = any_sign(text, |number, sign| {
        half |= 1 << number;
        sign.with.is_none()
    });
    let other = |(number, sign): (usize, &Sign)| {
        half >> number & 1 == 1 && sign.with.is_some_and(|with| has_word(text.as_bytes(), with))
    };
    is_whole || half != 0 && SIGNS.iter().enumerate().any(other) || has_userinfo(text)
}

pub(super) fn is_secret_name(name: &str) -> bool {
    any_sign(name, |_, sign| sign.with.is_none())
}

impl Sign {
    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let end = at + self.text.len();
        let is = bytes.get(at..end).is_some_and(|part| part.eq_ignore_ascii_case(self.text.as_bytes()));
        is && is_apart(bytes, (at, end), self.at)
    }
}

/// Whether the match is not part of a longer word; `userPwd` has two parts.
fn is_apart(bytes: &[u8], (at, end): (usize, usize), place: Place) -> bool {
    let byte = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().unwrap_or_default();
    let (before, first) = (byte(at.checked_sub(1)), byte(Some(at)));
    let (last, after) = (byte(end.checked_sub(1)), byte(Some(end)));
    let changes = |one: u8, other: u8| one.is_ascii_lowercase() && other.is_ascii_uppercase();
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match place {
        Place::Any => true,
        Place::Part => {
            (!before.is_ascii_alphanumeric() || changes(before, first))
                && (!after.is_ascii_alphabetic() || changes(last, after))
        }
        Place::Word => !is_of_word(before) && !is_of_word(after),
    }
}

fn has_word(bytes: &[u8], word: &str) -> bool {
    let is_it = |(at, part): (usize, &[u8])| {
        part.eq_ignore_ascii_case(word.as_bytes()) && is_apart(bytes, (at, at + word.len()), Place::Word)
    };
    bytes.windows(word.len()).enumerate().any(is_it)
}

/// `scheme://user:password@host`
fn has_userinfo(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, behind)| behind.contains('@'))
}

/// Removes the user info from URLs: `scheme://user:password@host` becomes `scheme://?@host`.
pub fn without_userinfo(said: &str) -> String {
    let mut left = String::with_capacity(said.len());
    let mut rest = said;
    while let Some((before, tail)) = rest.split_once("://") {
        left.push_str(before);
        left.push_str("://");
        let end = tail.find(char::is_whitespace).unwrap_or(tail.len());
        let (url, behind) = tail.split_at(end);
        match url.rsplit_once('@') {
            Some((_, place)) => {
                left.push_str("?@");
                left.push_str(place);
            }
            None => left.push_str(url),
        }
        rest = behind;
    }
    left.push_str(rest);
    left
}
