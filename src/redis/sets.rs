//! Servers that decide together, and servers that do not.

use super::{RedisUrl, RedisUrlError};

/// The schemes of URLs, behind which one may begin after a comma.
const SCHEMES: [&str; 7] =
    ["redis://", "rediss://", "valkey://", "valkeys://", "redis+unix://", "valkey+unix://", "unix://"];

/// The servers to look at, in sets: a lock is held by whoever has it on most servers of a set. A server is in one of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisSets(Vec<Vec<RedisUrl>>);

impl RedisSets {
    /// One more set; one without servers is none.
    ///
    /// # Errors
    /// When a server is in it twice, or in another set: the first such.
    pub fn add(&mut self, set: Vec<RedisUrl>) -> Result<(), RedisUrl> {
        for (at, url) in set.iter().enumerate() {
            if self.servers().any(|other| other == url) || set.iter().take(at).any(|other| other == url) {
                return Err(url.clone());
            }
        }
        if !set.is_empty() {
            self.0.push(set);
        }
        Ok(())
    }

    /// All servers, one set after the other.
    pub fn servers(&self) -> impl Iterator<Item = &RedisUrl> {
        self.0.iter().flatten()
    }

    /// How many servers each set has.
    pub fn sizes(&self) -> Vec<usize> {
        self.0.iter().map(Vec::len).collect()
    }

    /// Whether there is no server.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<RedisUrl>> for RedisSets {
    /// All of them are one set.
    fn from(set: Vec<RedisUrl>) -> Self {
        Self(if set.is_empty() { Vec::new() } else { vec![set] })
    }
}

/// The URLs of a list with commas. A comma that no URL follows is a part of the one before, perhaps of its password.
pub fn parse_list(text: &str) -> Result<Vec<RedisUrl>, RedisUrlError> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(',') {
        let begins = |scheme: &str| part.trim_start().get(..scheme.len()) == Some(scheme);
        match parts.last_mut() {
            Some(last) if !SCHEMES.into_iter().any(begins) => last.extend([",", part]),
            _ => parts.push(part.to_owned()),
        }
    }
    parts.iter().map(|part| RedisUrl::parse(part)).collect()
}

#[cfg(test)]
#[cfg(feature = "redis")]
mod tests {
    use super::*;

    fn urls(text: &str) -> Vec<RedisUrl> {
        parse_list(text).unwrap()
    }

    #[test]
    fn a_comma_separates_urls_and_nothing_else() {
        let table = [
            ("redis://a", vec!["a:6379"]),
            ("redis://a,redis://b:7000/1, rediss://c", vec!["a:6379", "b:7000/1", "c:6379"]),
            ("redis://:p,w@a,unix:///run/x,y.sock", vec!["a:6379", "/run/x,y.sock"]),
        ];
        for (text, shown) in table {
            assert_eq!(urls(text).iter().map(ToString::to_string).collect::<Vec<_>>(), shown);
        }
        assert!(parse_list("redis://a,redis://").is_err());
        assert!(parse_list("").is_err());
    }

    #[test]
    fn a_server_is_in_one_set() {
        let mut sets = RedisSets::from(urls("redis://a,redis://b"));
        assert_eq!(sets.add(urls("redis://c,redis://:s3cret@a")).unwrap_err().to_string(), "a:6379");
        assert_eq!(sets.add(urls("redis://d,redis://d")).unwrap_err().to_string(), "d:6379");
        sets.add(Vec::new()).unwrap();
        sets.add(urls("redis://c")).unwrap();
        assert_eq!((sets.sizes(), sets.servers().count(), sets.is_empty()), (vec![2, 1], 3, false));
        assert_eq!(RedisSets::from(Vec::new()), RedisSets::default());
    }
}
