use super::{RedisUrl, RedisUrlError};

/// URL schemes that start a new URL after a comma.
const SCHEMES: [&str; 7] =
    ["redis://", "rediss://", "valkey://", "valkeys://", "redis+unix://", "valkey+unix://", "unix://"];

/// Sets of servers; a server is in exactly one set. A lock is held by the client that has it on most servers of a set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisSets(Vec<Vec<RedisUrl>>);

impl RedisSets {
    /// Adds a set; an empty one is ignored.
    ///
    /// # Errors
    /// The first URL that is in the set twice, or already in another set.
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

    pub fn servers(&self) -> impl Iterator<Item = &RedisUrl> {
        self.0.iter().flatten()
    }

    pub fn sizes(&self) -> Vec<usize> {
        self.0.iter().map(Vec::len).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<RedisUrl>> for RedisSets {
    fn from(set: Vec<RedisUrl>) -> Self {
        Self(if set.is_empty() { Vec::new() } else { vec![set] })
    }
}

/// Parses a comma-separated list. A comma without a URL after it belongs to the URL before it, for example to its password.
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
