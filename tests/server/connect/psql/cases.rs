//! The table of cases.
//!
//! In braces: `{P}` the server's port, `{D}` the directory of its socket and `{E}` the same percent-encoded,
//! `{R}` the port of a server whose sessions are read-only, `{F}` a port without a listener, `{H}` the home
//! directory, `{CRT}` the server's own certificate, `{ME}` the operating system user.

/// The expected result of a case.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    /// The same as psql.
    AsPsql,
    /// The same as psql from this version on. An older psql does not support it; the flag is whether it works
    /// according to the documentation of the newer one.
    Since(u32, bool),
    /// psql accepts it and locktop does not, for this reason.
    Stricter(&'static str),
    /// The other way round.
    Laxer(&'static str),
}

/// The input of a case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) target: Option<&'static str>,
    pub(super) flags: &'static [&'static str],
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Under the home directory: name, mode, text.
    pub(super) files: &'static [(&'static str, u32, &'static str)],
    pub(super) expected: Expected,
}

const fn case(target: &'static str) -> Case {
    Case { target: Some(target), flags: &[], env: &[], files: &[], expected: Expected::AsPsql }
}

impl Case {
    const fn none() -> Self {
        Self { target: None, ..case("") }
    }

    const fn flags(self, flags: &'static [&'static str]) -> Self {
        Self { flags, ..self }
    }

    const fn env(self, env: &'static [(&'static str, &'static str)]) -> Self {
        Self { env, ..self }
    }

    const fn files(self, files: &'static [(&'static str, u32, &'static str)]) -> Self {
        Self { files, ..self }
    }

    const fn since(self, version: u32, works: bool) -> Self {
        Self { expected: Expected::Since(version, works), ..self }
    }

    const fn stricter(self, why: &'static str) -> Self {
        Self { expected: Expected::Stricter(why), ..self }
    }

    const fn laxer(self, why: &'static str) -> Self {
        Self { expected: Expected::Laxer(why), ..self }
    }
}

pub(super) const CASES: &[Case] = &[
    // Key words and values.
    case("host={D} port={P}"),
    case("host={D} port={P} dbname=postgres"),
    case("host = {D}   port= {P} dbname =postgres"),
    case("host='{D}' port='{P}' dbname='postgres'"),
    case("host='{D}'port='{P}'dbname='postgres'"),
    case("host={D} port={P} dbname='a b'"),
    case("host={D} port={P} dbname=a\\ b"),
    case("host={D} port={P} dbname='it\\'s'"),
    case("host={D} port={P} dbname=it\\'s"),
    case("host={D} port={P} dbname='müll'"),
    case("host={D} port={P} user='o\\'neil' dbname=postgres"),
    case("host={D} port={P} dbname=''"),
    case("host={D} port={P} user='' dbname=postgres"),
    case("host={D} port={P} dbname=postgres user=postgres"),
    case("host={D}	port={P}
dbname=postgres"),
    case("host={D} port={P} dbname=template1 dbname=postgres"),
    case("host={D} port={P} dbname=postgres application_name=watch"),
    case("host={D} port={P} dbname=postgres application_name='two words'"),
    case("host={D} port={P} dbname=postgres fallback_application_name=fall application_name=first"),
    case("host={D} port={P} dbname=postgres options='-c geqo=off'"),
    case("host={D} port={P} dbname=postgres options='-c geqo=off -c work_mem=9MB'"),
    case("host={D} port={P} dbname=postgres options=-cgeqo=off"),
    case("host={D} port={P} dbname=postgres options='--geqo=off'"),
    case("host={D} port={P} dbname=postgres user=crowd"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right "),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd"),
    case("host=localhost hostaddr=127.0.0.1 port={P} dbname=postgres user=crowd"),
    case("hostaddr=127.0.0.1 port={P} dbname=postgres user=crowd"),
    case("host=no-such-host.invalid hostaddr=127.0.0.1 port={P} dbname=postgres user=crowd"),
    case("host='' hostaddr=127.0.0.1 port={P} dbname=postgres user=crowd"),
    case("host={D} hostaddr=127.0.0.1 port={P} dbname=postgres user=crowd"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=wrong "),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice"),
    case("host=127.0.0.1 port={P} dbname=postgres user='jürgen' password='pässword'"),
    case("host={D} port={P} dbname=nowhere"),
    case("host={D} port={P} dbname=postgres user=nobody-here"),
    case("host={H} port={P}"),
    case("host={D} port={F}"),
    case("host=127.0.0.1 port={F} dbname=postgres"),
    case("host=no-such-host.invalid port={P}"),
    case("host=127.0.0.1 port={P} dbname=postgres user=outsider"),
    case("host={D} port={P} dbname=postgres options='-c nonsense=1'"),
    case("host={D} port={P} dbname=postgres options='-c geqo=perhaps'"),
    // Key words and values with mistakes.
    case("host={D} port={P} dbname"),
    case("dbname = "),
    case("host"),
    case("host={D} port"),
    case("=x"),
    case("= x y=z"),
    case("dbname='open"),
    case("dbname='open\\'"),
    case("zebra=1"),
    case("HOST={D}"),
    case("host={D} Port={P}"),
    case("hots={D}"),
    case("ssl=true"),
    case("host={D} port={P} dbname=postgres extra"),
    case("host={D},port={P}"),
    case("host={D} port=0"),
    case("host={D} port=65536"),
    case("host={D} port=-1"),
    case("host={D} port=x"),
    case("host={D} port=5432x"),
    case("host={D} port='5 4'"),
    case("host={D} port=99999999999"),
    case("hostaddr=localhost port={P}"),
    case("hostaddr=127.0.0.256 port={P}"),
    case("host=a,b hostaddr=127.0.0.1 port={P}"),
    case("host=a hostaddr=127.0.0.1,127.0.0.1 port={P}"),
    case("host=a,b port=1,2,3"),
    case("host=a port=1,2"),
    case("host='' port=1,2"),
    case("requiressl=0 host={D} port={P} dbname=postgres"),
    case("requiressl=1 host=127.0.0.1 port={P} user=crowd dbname=postgres"),
    case("postgresql://{E}:{P}/postgres?dbname=postgres&"),
    case("tty=x host={D} port={P}"),
    case("authtype=x host={D} port={P}"),
    case("requiressl=1 host={D} port={P}"),
    case("service host={D}"),
    case("host={D} port=' {P} ' dbname=postgres"),
    case("host={D} port=+{P} dbname=postgres"),
    case("host=' {D}' port={P} dbname=postgres"),
    case("host={D} port='' dbname=postgres"),
    // Names and nothing else.
    case("postgres").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}")]),
    case("a b").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}")]),
    case("it's").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}")]),
    case("müll").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}")]),
    case("").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}")]),
    case("template1").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}")]),
    case("nowhere").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}")]),
    case("POSTGRES").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}")]),
    // URIs.
    case("postgresql:///postgres?host={D}&port={P}"),
    case("postgres:///postgres?host={D}&port={P}"),
    case("postgresql://{E}:{P}/postgres"),
    case("postgresql://{E}:{P}"),
    case("postgresql://{E}:{P}/"),
    case("postgresql://{E}:{P}/a%20b"),
    case("postgresql://{E}:{P}/a b"),
    case("postgresql://{E}:{P}/it's"),
    case("postgresql://{E}:{P}/m%C3%BCll"),
    case("postgresql://{E}:{P}/müll"),
    case("postgresql://crowd@127.0.0.1:{P}/postgres"),
    case("postgresql://alice:right@127.0.0.1:{P}/postgres"),
    case("postgresql://alice:r%69ght@127.0.0.1:{P}/postgres"),
    case("postgresql://alice@127.0.0.1:{P}/postgres?password=right"),
    case("postgresql://127.0.0.1:{P}/postgres?user=alice&password=right"),
    case("postgresql://alice:wrong@127.0.0.1:{P}/postgres"),
    case("postgresql://alice:@127.0.0.1:{P}/postgres?password=right"),
    case("postgresql://:right@127.0.0.1:{P}/postgres?user=alice"),
    case("postgresql://j%C3%BCrgen:p%C3%A4ssword@127.0.0.1:{P}/postgres"),
    case("postgresql://o%27neil@{E}:{P}/postgres"),
    case("postgresql://127.0.0.1:{P}/nowhere?dbname=postgres&user=crowd"),
    case("postgresql://nowhere.invalid/postgres?host={D}&port={P}"),
    case("postgresql://crowd@127.0.0.1/postgres?port={P}"),
    case("postgresql://crowd@/postgres?host=127.0.0.1&port={P}"),
    case("postgresql://crowd@:{P}/postgres?host=127.0.0.1"),
    case("postgresql://{E}:{P}/postgres?application_name=a%20b"),
    case("postgresql://{E}:{P}/postgres?application_name=a+b"),
    case("postgresql://{E}:{P}/postgres?application_name="),
    case("postgresql://{E}:{P}/postgres?options=-c%20geqo%3Doff"),
    case("postgresql://{E}:{P}/postgres?"),
    case("postgresql://{E}:{P}?dbname=postgres"),
    case("postgresql://crowd@127.0.0.1:{P}/postgres?ssl=true"),
    case("postgresql://crowd@127.0.0.1:{P}/postgres?sslmode=disable"),
    case("postgresql://crowd@127.0.0.1:{F},127.0.0.1:{P}/postgres"),
    case("postgresql://crowd@127.0.0.1,127.0.0.1:{P}/postgres?port={P}"),
    case("postgresql://crowd@[127.0.0.1]:{P}/postgres"),
    case("postgresql://crowd@127.0.0.1:{P}/postgres?%68ost=127.0.0.1"),
    case("postgresql://{E}:{P}/postgres?dbname=postgres&dbname=template1"),
    // URIs with mistakes.
    case("postgresql://[::1"),
    case("postgresql://[]:{P}/postgres"),
    case("postgresql://[::1]x/postgres"),
    case("postgresql://127.0.0.1:{P}/postgres?zebra=1"),
    case("postgresql://127.0.0.1:{P}/postgres?host"),
    case("postgresql://127.0.0.1:{P}/postgres?host=a=b"),
    case("postgresql://127.0.0.1:{P}/postgres?=x"),
    case("postgresql://127.0.0.1:{P}/postgres?&"),
    case("postgresql://127.0.0.1:{P}/postgres?user=crowd&&sslmode=disable"),
    case("postgresql://127.0.0.1:{P}/%"),
    case("postgresql://127.0.0.1:{P}/%2"),
    case("postgresql://127.0.0.1:{P}/%zz"),
    case("postgresql://127.0.0.1:{P}/%00"),
    case("postgresql://127.0.0.1:x/postgres"),
    case("postgresql://127.0.0.1:0/postgres"),
    case("postgresql://127.0.0.1:65536/postgres"),
    case("postgresql://u:p:q@127.0.0.1:{P}/postgres"),
    case("postgresql://a@b@127.0.0.1:{P}/postgres"),
    case("postgresql://127.0.0.1:{P}/postgres?HOST=x"),
    case("POSTGRESQL://127.0.0.1:{P}/postgres"),
    case("mysql://127.0.0.1:{P}/postgres"),
    case("postgresql:/127.0.0.1"),
    case("postgresql:127.0.0.1"),
    case("postgresql://127.0.0.1:{P}/postgres?ssl=yes"),
    case("postgresql://127.0.0.1:{P}/postgres?service=none"),
    case("postgresql://nobody-here@{E}:{P}/postgres"),
    // Flags, and the settings that they do not override.
    Case::none().flags(&["-h", "{D}", "-p", "{P}"]),
    Case::none().flags(&["-h", "{D}", "-p", "{P}", "-d", "postgres"]),
    case("postgres").flags(&["-h", "{D}", "-p", "{P}"]),
    Case::none().flags(&["-h", "127.0.0.1", "-p", "{P}", "-U", "crowd", "-d", "postgres"]),
    Case::none().flags(&["-h", "nowhere.invalid", "-d", "host={D} port={P} dbname=postgres"]),
    Case::none().flags(&["-U", "nobody-here", "-d", "postgresql://crowd@127.0.0.1:{P}/postgres"]),
    case("postgresql:///postgres?host={D}&port={P}").flags(&["-U", "crowd"]),
    case("host='' dbname=postgres port={P}").flags(&["-h", "{D}"]),
    Case::none().flags(&["-h", "{D}", "-p", "x"]),
    Case::none().flags(&["-h", "{D}", "-p", "0"]),
    Case::none().flags(&["-h", "127.0.0.1", "-p", "{P}", "-U", "alice", "-d", "postgres"]),
    Case::none().flags(&["-h", "127.0.0.1,127.0.0.1", "-p", "{F},{P}", "-U", "crowd", "-d", "postgres"]),
    Case::none().flags(&["-h", "", "-p", "{P}", "-d", "postgres"]).env(&[("PGHOST", "{D}")]),
    // The environment.
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGUSER", "crowd")]),
    Case::none().env(&[("PGHOSTADDR", "127.0.0.1"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGUSER", "crowd")]),
    Case::none().env(&[("PGHOST", "127.0.0.1"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGUSER", "alice"), ("PGPASSWORD", "right")]),
    Case::none().env(&[("PGHOST", "127.0.0.1"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGUSER", "alice"), ("PGPASSWORD", "wrong")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGAPPNAME", "watch")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGOPTIONS", "-c geqo=off")]),
    case("dbname=template1").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres")]),
    case("template1").env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGSSLMODE", "disable")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGSSLMODE", "maybe")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGPORT", "x")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGCONNECT_TIMEOUT", "7")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGCONNECT_TIMEOUT", "soon")]),
    Case::none().env(&[("PGHOST", ""), ("PGPORT", "{P}"), ("PGHOSTADDR", "127.0.0.1"), ("PGUSER", "crowd"), ("PGDATABASE", "postgres")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGUSER", "")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGSSLMODE", "")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGREQUIRESSL", "1"), ("PGHOST", "127.0.0.1"), ("PGUSER", "crowd")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGTARGETSESSIONATTRS", "read-only")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGTARGETSESSIONATTRS", "nonsense")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGCHANNELBINDING", "nonsense")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGGSSENCMODE", "nonsense")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGGSSENCMODE", "disable")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGDATABASE", "host=elsewhere")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGKRBSRVNAME", "x"), ("PGSSLCOMPRESSION", "0"), ("PGSSLSNI", "0"), ("PGSSLMINPROTOCOLVERSION", "TLSv1.2")]),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGTZ", "Nowhere/Land")]).laxer("the time zone of a session is nothing to locktop, which sets its own"),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGCLIENTENCODING", "nonsense")]).laxer("locktop speaks UTF-8, whatever the terminal does"),
    Case::none().env(&[("PGHOST", "{D}"), ("PGPORT", "{P}"), ("PGDATABASE", "postgres"), ("PGTZ", "Asia/Tokyo"), ("PGDATESTYLE", "German"), ("PGCLIENTENCODING", "LATIN1")]),
    // Numbers.
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right connect_timeout=5"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right connect_timeout=0"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right connect_timeout=-1"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right connect_timeout=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right connect_timeout=' 5 '"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right connect_timeout=5s"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right connect_timeout=x"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right connect_timeout=99999999999"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives=0"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives=1 keepalives_idle=5 keepalives_interval=2 keepalives_count=3 tcp_user_timeout=9000"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives=x"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives_idle=x"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives_interval=1s"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives_count=x"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right tcp_user_timeout=x"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives_idle=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right tcp_user_timeout=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right channel_binding=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right target_session_attrs=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right gssencmode=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right passfile=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslrootcert=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslcert=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right options=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right password=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right replication=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives_idle=0").laxer("documented as the default of the system; on Linux libpq asks that for zero, which it refuses"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right keepalives_idle=-5").laxer("documented as the default of the system; on Linux libpq asks that for zero, which it refuses"),
    // Several servers, and the session attributes that are required.
    case("host=127.0.0.1,127.0.0.1 port={F},{P} dbname=postgres user=crowd "),
    case("host=127.0.0.1,{D} port={F},{P} dbname=postgres user=crowd "),
    case("host={H},{D} port={P} dbname=postgres user=crowd "),
    case("host=127.0.0.1,127.0.0.1 port={P} dbname=postgres user=crowd "),
    case("host=127.0.0.1,127.0.0.1 port={P},{F} dbname=postgres user=crowd "),
    case("host=no-such-host.invalid,127.0.0.1 port={P} dbname=postgres user=crowd "),
    case("hostaddr=127.0.0.1,127.0.0.1 port={F},{P} dbname=postgres user=crowd "),
    case("host=127.0.0.1,127.0.0.1 port={F},{F} dbname=postgres user=crowd "),
    case("host=127.0.0.1,127.0.0.1, port={F},{P},{P} dbname=postgres user=crowd "),
    case("host=127.0.0.1,127.0.0.1 port={P},x dbname=postgres user=crowd ").stricter("an invalid port is rejected immediately, not only when the other servers are down"),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd target_session_attrs=any"),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd target_session_attrs=read-write"),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd target_session_attrs=read-only"),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd target_session_attrs=primary"),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd target_session_attrs=standby"),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd target_session_attrs=prefer-standby"),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd target_session_attrs=nonsense"),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd target_session_attrs=READ-WRITE"),
    case("host={D},127.0.0.1 port={P},{R} dbname=postgres user=crowd target_session_attrs=read-write"),
    case("host={D},127.0.0.1 port={P},{R} dbname=postgres user=crowd target_session_attrs=read-only"),
    case("host={D},127.0.0.1 port={P},{R} dbname=postgres user=crowd target_session_attrs=primary"),
    case("host=127.0.0.1,127.0.0.1 port={R},{P} dbname=postgres user=crowd target_session_attrs=read-write"),
    case("host=127.0.0.1,127.0.0.1 port={P},{R} dbname=postgres user=crowd target_session_attrs=read-only"),
    case("host=127.0.0.1 port={R} dbname=postgres user=crowd target_session_attrs=read-write"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right load_balance_hosts=disable").since(16, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right load_balance_hosts=random").since(16, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right load_balance_hosts=nonsense").since(16, false),
    // TLS, with a self-signed certificate of the server.
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode='disable'"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode='allow'"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode='prefer'"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode='require'"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode='verify-ca'"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode='verify-full'"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode='REQUIRE'"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=''"),
    case("host={D} port={P} dbname=postgres sslmode=disable"),
    case("host={D} port={P} dbname=postgres sslmode=require"),
    case("host={D} port={P} dbname=postgres sslmode=verify-full"),
    case("host={D} port={P} dbname=postgres sslmode=nonsense"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=verify-ca sslrootcert={CRT}"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=verify-full sslrootcert={CRT}"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require sslrootcert={CRT}"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require sslrootcert={H}/none"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=verify-ca sslrootcert={H}/none"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require ssl_min_protocol_version=TLSv1.3"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require ssl_max_protocol_version=TLSv1.2"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require ssl_min_protocol_version=tlsv1.2"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right ssl_min_protocol_version=TLSv1.4"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right ssl_min_protocol_version=''"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require channel_binding=require"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=disable channel_binding=require"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right channel_binding=disable"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right channel_binding=always"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require sslcert={H}/none"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require sslsni=0"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=require").files(&[(".postgresql/root.crt", 0o644, "nonsense")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslmode=prefer").files(&[(".postgresql/root.crt", 0o644, "nonsense")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd channel_binding=require"),
    case("host=127.0.0.1 port={P} dbname=postgres user=clear password=right channel_binding=require"),
    case("host={D} port={P} dbname=postgres channel_binding=require"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslcertmode=disable").since(16, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslcertmode=nonsense").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslcertmode=require sslmode=require").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslcertmode=require sslmode=prefer").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslcertmode=require sslmode=disable").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslrootcert=system sslmode=require").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslrootcert=system").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslnegotiation=postgres").since(17, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right sslnegotiation=direct").since(17, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right gssencmode=prefer"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right gssencmode=nonsense"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right gssencmode=require"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right replication=nonsense"),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right replication=off"),
    case("host={D} port={P} dbname=postgres requirepeer=nobody-at-all"),
    // Authentication methods.
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right require_auth=scram-sha-256").since(16, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right require_auth=!scram-sha-256").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right require_auth=md5").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right require_auth=password,scram-sha-256").since(16, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=clear password=right require_auth=scram-sha-256").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=clear password=right require_auth=password").since(16, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=clear password=right require_auth=!password").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=hashed password=right require_auth=md5").since(16, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=hashed password=right require_auth=scram-sha-256").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd password=right require_auth=none").since(16, true),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd password=right require_auth=!none").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=crowd password=right require_auth=scram-sha-256").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right require_auth=nonsense").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right require_auth=md5,md5").since(16, false),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right require_auth=md5,!none").since(16, false),
    case("host={D} port={P} dbname='x"),
    case("postgresql://{E}:{P}/postgres?application_name"),
    case("host={D} port={P} sslmode=verify"),
    case("host={D} port={P} sslmode=verify_full"),
    case("host={D} port={P} target_session_attrs=any,primary"),
    case("host={D} port={P} channel_binding=yes"),
    case("host={D} port={P} gssencmode=yes"),
    case("host={D} port={P} ssl_max_protocol_version=1.3"),
    case("host={D},{D},{D} port={P},{P}"),
    case("postgresql://{E}:{P}/postgres?port=x"),
    case("host={D} port={P} user='nobody-here'"),
    case("postgresql://{E}:{P}/nowhere"),
    case("postgresql://{E}:{F}/postgres"),
    case("postgresql://{E}:{P}/postgres?options=-c%20nonsense%3D1"),
    // The password file.
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:{P}:postgres:alice:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:{P}:postgres:alice:
*:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "*:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:*:*:alice:right")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:{P}:postgres:alice:wrong
*:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:{P}:postgres:bob:wrong
*:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "# 127.0.0.1:{P}:postgres:alice:wrong
127.0.0.1:{P}:postgres:alice:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "localhost:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o644, "127.0.0.1:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o640, "127.0.0.1:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:*:*:*:ri\\ght
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:*:*:*:right:more
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:*:*:alice
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, " 127.0.0.1:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "

127.0.0.1:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:*:*:a*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice passfile={H}/other").files(&[("other", 0o600, "*:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").env(&[("PGPASSFILE", "{H}/other")]).files(&[("other", 0o600, "*:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").env(&[("PGPASSFILE", "{H}/none")]).files(&[(".pgpass", 0o600, "*:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice password=right").files(&[(".pgpass", 0o600, "*:*:*:*:wrong
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=alice").env(&[("PGPASSWORD", "right")]).files(&[(".pgpass", 0o600, "*:*:*:*:wrong
")]),
    case("host=10.0.0.1 hostaddr=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "10.0.0.1:*:*:*:right
")]),
    case("hostaddr=127.0.0.1 port={P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:*:*:*:right
")]),
    case("host=127.0.0.1,127.0.0.1 port={F},{P} dbname=postgres user=alice").files(&[(".pgpass", 0o600, "127.0.0.1:*:*:*:right
")]),
    case("host=127.0.0.1 port={P} dbname=postgres user=jürgen").files(&[(".pgpass", 0o600, "*:*:*:j\\:x:wrong
*:*:*:jürgen:pässword
")]),
    // The service file.
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main dbname=template1").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("postgresql:///?service=main").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    Case::none().env(&[("PGSERVICE", "main")]).files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("dbname=template1").env(&[("PGSERVICE", "main")]).files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").env(&[("PGHOST", "nowhere.invalid"), ("PGPORT", "1")]).files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").env(&[("PGSERVICEFILE", "{H}/other")]).files(&[("other", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").files(&[("other", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=none").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=Main").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "# no

  [main]  
  host={D}  
port={P}
port=1
dbname=postgres
[other]
host=x
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[other]
host
[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
host
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
host = {D}
port={P}
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
zebra=1
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
service=other
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
host='{D}'
port={P}
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port=x
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]x
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "host=x
[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
host=127.0.0.1
port={P}
dbname=postgres
user=alice
password=right
")]),
    case("service=main").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=a b
options=-c geqo=off
")]),
    case("service=main").env(&[("PGSYSCONFDIR", "{H}/etc")]).files(&[("etc/pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").env(&[("PGSYSCONFDIR", "{H}/etc")]).files(&[(".pg_service.conf", 0o644, "[main]
host=x.invalid
"), ("etc/pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main").env(&[("PGSYSCONFDIR", "{H}/etc")]).files(&[(".pg_service.conf", 0o644, "[other]
host=x.invalid
"), ("etc/pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=''").files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    Case::none().env(&[("PGSERVICE", ""), ("PGHOST", "{D}"), ("PGPORT", "{P}")]).files(&[(".pg_service.conf", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]),
    case("service=main servicefile={H}/other").files(&[("other", 0o644, "[main]
host={D}
port={P}
dbname=postgres
")]).since(18, true),
];
