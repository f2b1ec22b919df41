//! A [`ConnInfo`] as text, for a child process that is to connect in the same way.

use std::fmt::Write;
use std::time::Duration;

use super::parameter::{CHANNEL_BINDING, LOAD_BALANCE};
use super::settings::word_of;
use super::tls_options::{CERT_MODES, Negotiation, TlsOptions, TlsVersion};
use super::{ConnInfo, Endpoint, Host};

impl ConnInfo {
    /// A key=value string with all settings, **passwords included**: for a pipe, never for a command line or a log.
    /// Passwords from a password file are not included; that file is read again.
    #[must_use]
    pub fn to_key_value(&self) -> String {
        let each = |part: &dyn Fn(&Endpoint) -> String| {
            self.endpoints.iter().map(part).collect::<Vec<_>>().join(",")
        };
        let flag = |on: bool| u8::from(on).to_string();
        let seconds = |time: Duration| time.as_secs().to_string();
        let keepalives = &self.keepalives;
        let mut out = String::new();
        let mut set = |key: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('\'', "\\'");
            // Writing to a string does not fail.
            let _ = write!(out, "{key}='{value}' ");
        };
        set("host", &each(&|place| host(&place.host)));
        set(
            "hostaddr",
            &each(&|place| place.address.map_or_else(String::new, |address| address.to_string())),
        );
        set("port", &each(&|place| place.port.to_string()));
        set("user", &self.user);
        set("dbname", &self.dbname);
        set("application_name", &self.application_name);
        if let Some((password, _)) = &self.password {
            set("password", password.expose());
        }
        if let Some((_, file)) = self.endpoints.iter().find_map(|place| place.password.as_ref()) {
            set("passfile", &file.display().to_string());
        }
        if let Some(options) = &self.options {
            set("options", options);
        }
        tls(&self.tls, &mut set);
        if let Some(methods) = self.require_auth.text() {
            set("require_auth", methods);
        }
        set("channel_binding", word_of(&CHANNEL_BINDING, &self.channel_binding));
        set("target_session_attrs", self.session.word());
        set("load_balance_hosts", word_of(&LOAD_BALANCE, &self.shuffle));
        set("keepalives", &flag(keepalives.on));
        set("keepalives_idle", &seconds(keepalives.idle));
        set("keepalives_interval", &seconds(keepalives.interval));
        set("keepalives_count", &keepalives.count.to_string());
        if let Some(timeout) = keepalives.user_timeout {
            set("tcp_user_timeout", &timeout.as_millis().to_string());
        }
        // Zero is no limit.
        set("connect_timeout", &self.connect_timeout.map_or_else(|| "0".to_owned(), seconds));
        out.truncate(out.trim_end().len());
        out
    }

    /// The same with one more server setting for the sessions.
    #[must_use]
    pub fn with_setting(mut self, name: &str, value: &str) -> Self {
        // The server splits the options at spaces that no backslash escapes (pg_split_opts in postinit.c).
        let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
        let before = self.options.take().map(|options| options + " ").unwrap_or_default();
        self.options = Some(format!("{before}-c {name}={value}"));
        self
    }
}

fn host(host: &Host) -> String {
    match host {
        Host::Local => String::new(),
        Host::Tcp(name) => name.clone(),
        Host::Unix(directory) => directory.display().to_string(),
    }
}

fn tls(tls: &TlsOptions, set: &mut impl FnMut(&str, &str)) {
    set("sslmode", tls.mode.word());
    if tls.negotiation == Negotiation::Direct {
        set("sslnegotiation", "direct");
    }
    let version = |version| match version {
        TlsVersion::V1_2 => "TLSv1.2",
        TlsVersion::V1_3 => "TLSv1.3",
    };
    for (key, limit) in [("ssl_min_protocol_version", tls.min), ("ssl_max_protocol_version", tls.max)] {
        if let Some(limit) = limit {
            set(key, version(limit));
        }
    }
    set("sslsni", if tls.sni { "1" } else { "0" });
    set("sslcertmode", word_of(&CERT_MODES, &tls.cert_mode));
    if let Some(root) = &tls.root {
        set("sslrootcert", root);
    }
    let files =
        [("sslcrl", &tls.crl), ("sslcrldir", &tls.crl_dir), ("sslcert", &tls.cert), ("sslkey", &tls.key)];
    for (key, file) in files {
        if let Some(file) = file {
            set(key, &file.display().to_string());
        }
    }
    if let Some(password) = &tls.key_password {
        set("sslpassword", password.expose());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ConnInfo, Flags, Sources};

    fn parse(text: &str) -> ConnInfo {
        let sources = Sources {
            target: Some(text),
            flags: Flags::default(),
            flags_first: false,
            env: &|_| None,
            home: None,
            os_user: Some("me".to_owned()),
        };
        ConnInfo::resolve(&sources).unwrap()
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for text in [
            "app",
            "host=/run/postgresql port=6000 user=ops",
            "host=a,b,/tmp hostaddr=10.0.0.1,::1, port=1,2,3 dbname='a b' connect_timeout=0 sslmode=require",
            "host=a,b sslmode=allow channel_binding=require target_session_attrs=read-write keepalives=0",
            "postgresql://u:p%20%27%5C@db/x?options=-c%20a%3Db&tcp_user_timeout=9&keepalives_count=7",
            "host='' password='it\\'s \\\\ so'",
            "host=a sslmode=verify-full sslrootcert='/a b/ca.pem' sslcert=me.crt sslkey=me.key sslpassword=x sslcrl=c sslcrldir=d",
            "host=a,b sslrootcert=system sslsni=0 sslcertmode=require ssl_min_protocol_version=tlsv1.3 sslnegotiation=direct",
            "host=a,b target_session_attrs=prefer-standby load_balance_hosts=random require_auth=!md5,!password",
        ] {
            let info = parse(text);
            let again = parse(&info.to_key_value());
            assert_eq!(format!("{info:?}"), format!("{again:?}"), "{text}");
            let secret =
                |info: &ConnInfo| info.password.as_ref().map(|(secret, _)| secret.expose().to_owned());
            assert_eq!(secret(&info), secret(&again), "{text}");
        }
    }

    #[test]
    fn a_setting_is_added_to_the_options() {
        let info = parse("host=db options='-c x=y'").with_setting("locktop.orphan_grace", "1.5 s");
        assert_eq!(info.options.as_deref(), Some("-c x=y -c locktop.orphan_grace=1.5\\ s"));
        assert_eq!(parse("db").with_setting("a", "b").options.as_deref(), Some("-c a=b"));
    }
}
