//! The replicas that an SRV record of the DNS names (RFC 2782). It is looked up at the start, and again and
//! again from then on.
//!
//! If the record can't be looked up, or names no server, nothing changes: the replicas that were named stay
//! named. So an outage of the name server does not take ClickHouse away, and replicas that are all taken out
//! of the record for a moment still get requests.
//!
//! Names of the targets are not looked up here, but for each connection, like the name of any server.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::base::iana::Rcode;
use domain::base::name::ToName;
use domain::base::{Message, Name, Rtype};
use domain::rdata::Srv;
use domain::resolv::stub::conf::{ResolvConf, ServerConf, Transport};
use domain::resolv::StubResolver;
use tokio::sync::Notify;

use crate::endpoint::Endpoint;
use crate::replicas::{Replicas, Target};

/// The shortest pause between two look-ups: a record is looked up again after its own time to live, but not
/// sooner than this.
const SHORTEST_PAUSE: Duration = Duration::from_secs(30);
/// Pause after a failed look-up, and while no replica is named yet.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// The most targets of a record, more than any shard has. An answer with more names something else than replicas.
const MAX_TARGETS: usize = 64;

/// A record that names replicas, and the account and the scheme for all of them.
pub struct SrvRecord {
    name: Name<Vec<u8>>,
    /// The endpoint that gives each target everything but its host and its port.
    like: Endpoint,
    /// The name server to ask. `None`: the system's.
    server: Option<SocketAddr>,
}

/// The answer to a look-up of a record.
#[derive(Debug, PartialEq, Eq)]
struct RecordAnswer {
    targets: Vec<Target>,
    time_to_live: Duration,
}

impl SrvRecord {
    /// Makes the record of `like.host`. The ports of its targets are native ports if `like` has a native port.
    ///
    /// # Errors
    /// Fails where the host is not a name that the DNS can have.
    pub fn new(like: Endpoint, server: Option<SocketAddr>) -> Result<SrvRecord, String> {
        let name = Name::from_str(&like.host).map_err(|error| format!("{} is no name: {error}", like.host))?;
        Ok(SrvRecord { name, like, server })
    }

    /// Looks the record up and names its targets as the replicas. Returns the pause until the next look-up.
    pub async fn update(&self, replicas: &Arc<Replicas>) -> Duration {
        let named = match self.look_up().await {
            Ok(found) => self.name(found, replicas).map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        named.unwrap_or_else(|why| {
            tracing::warn!(record = %self, why, "the replicas' record can't be looked up: those that are known stay");
            AFTER_FAILURE
        })
    }

    fn name(&self, found: RecordAnswer, replicas: &Arc<Replicas>) -> Result<Duration, crate::tls::TlsError> {
        let before = replicas.to_string();
        replicas.name(found.targets)?;
        replicas.watch();
        let now = replicas.to_string();
        if now != before {
            tracing::info!(record = %self, replicas = now, before, "the record names these replicas");
        }
        Ok(found.time_to_live.max(SHORTEST_PAUSE))
    }

    /// Looks the record up again and again, as long as the replicas are in use; at once when `at_once` is notified.
    pub fn follow(self, replicas: &Arc<Replicas>, first_pause: Duration, at_once: Arc<Notify>) {
        let replicas = Arc::downgrade(replicas);
        tokio::spawn(async move {
            let mut pause = first_pause;
            loop {
                let _ = tokio::time::timeout(pause, at_once.notified()).await;
                let Some(replicas) = Weak::upgrade(&replicas) else { return };
                pause = self.update(&replicas).await;
            }
        });
    }

    async fn look_up(&self) -> Result<RecordAnswer, String> {
        // Made anew each time: the system's servers may have changed.
        let resolver = StubResolver::from_conf(self.servers());
        let answer = resolver.query((&self.name, Rtype::SRV)).await.map_err(|error| error.to_string())?;
        self.read(answer.as_ref().as_slice())
    }

    fn servers(&self) -> ResolvConf {
        let Some(address) = self.server else { return ResolvConf::default() };
        let mut conf = ResolvConf::new();
        conf.servers.push(ServerConf::new(address, Transport::UdpTcp));
        conf.finalize();
        conf
    }

    fn read(&self, answer: &[u8]) -> Result<RecordAnswer, String> {
        let message = Message::from_octets(answer).map_err(|error| error.to_string())?;
        match message.header().rcode() {
            Rcode::NOERROR => {}
            Rcode::NXDOMAIN => return Err("there is no such name".to_owned()),
            other => return Err(format!("the name server answers {other}")),
        }
        let owner = message.canonical_name().ok_or("the answer does not say of what it is")?;
        let mut time_to_live = Duration::MAX;
        let mut targets = Vec::new();
        for record in message.answer().map_err(|error| error.to_string())?.limit_to_in::<Srv<_>>() {
            let record = record.map_err(|error| error.to_string())?;
            // A target of `.` says that there is no such service.
            if !record.owner().name_eq(&owner) || record.data().target().is_root() {
                continue;
            }
            time_to_live = time_to_live.min(record.ttl().into_duration());
            targets.push(self.target(record.data())?);
        }
        if targets.is_empty() {
            return Err("it names no server".to_owned());
        }
        if targets.len() > MAX_TARGETS {
            return Err(format!("it names {} servers, and {MAX_TARGETS} are the most", targets.len()));
        }
        sort(&mut targets);
        targets.dedup_by(|one, other| one.endpoint == other.endpoint);
        Ok(RecordAnswer { targets, time_to_live })
    }

    fn target(&self, record: &Srv<impl ToName>) -> Result<Target, String> {
        let host = record.target().to_name::<Vec<u8>>().to_string().to_ascii_lowercase();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if record.port() == 0 || !host.bytes().all(is_plain) {
            return Err(format!("it names {host:?}, port {}, which is no server", record.port()));
        }
        let endpoint = match self.like.native_port {
            None => Endpoint { host, port: record.port(), ..self.like.clone() },
            Some(_) => Endpoint { host, native_port: Some(record.port()), ..self.like.clone() },
        };
        Ok(Target { endpoint, priority: record.priority(), weight: record.weight() })
    }
}

/// Sorts the targets. Name servers change the order of their answers, and it has to stay the same here: the
/// first replica has the tables that are not replicated.
fn sort(targets: &mut [Target]) {
    targets.sort_by_cached_key(|target| {
        let Target { endpoint, priority, weight } = target;
        let port = endpoint.native_port.unwrap_or(endpoint.port);
        (*priority, std::cmp::Reverse(*weight), endpoint.host.clone(), port)
    });
}

impl fmt::Display for SrvRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use domain::base::{MessageBuilder, Ttl};
    use domain::rdata::Cname;

    use super::*;

    const NAME: &str = "_clickhouse._tcp.example.org";

    fn record(like: &str) -> SrvRecord {
        let like = Endpoint { host: NAME.to_owned(), ..Endpoint::parse(like).unwrap() };
        SrvRecord::new(like, None).unwrap()
    }

    fn name(text: &str) -> Name<Vec<u8>> {
        Name::from_str(text).unwrap()
    }

    /// Makes an answer with targets as (priority, weight, port, host, time to live).
    fn answer(owner: &str, targets: &[(u16, u16, u16, &str, u32)]) -> Vec<u8> {
        let mut question = MessageBuilder::new_vec().question();
        question.push((name(NAME), Rtype::SRV)).unwrap();
        let mut answer = question.answer();
        if owner != NAME {
            answer.push((name(NAME), Ttl::from_secs(1), Cname::new(name(owner)))).unwrap();
        }
        for (priority, weight, port, host, seconds) in targets {
            let data = Srv::new(*priority, *weight, *port, name(host));
            answer.push((name(owner), Ttl::from_secs(*seconds), data)).unwrap();
        }
        answer.finish()
    }

    fn shown(found: &RecordAnswer) -> Vec<String> {
        found.targets.iter().map(|target| target.endpoint.to_string()).collect()
    }

    #[test]
    fn targets_come_by_priority_and_weight_and_name() {
        let targets = [
            (2, 100, 8123, "spare.example.org", 90),
            (1, 10, 8123, "b.example.org", 60),
            (1, 10, 8123, "A.example.org.", 70),
            (1, 20, 8124, "c.example.org", 80),
        ];
        let found = record("http://ann:p@x").read(&answer(NAME, &targets)).unwrap();
        assert_eq!(found.time_to_live, Duration::from_secs(60));
        assert_eq!(
            shown(&found),
            [
                "http://c.example.org:8124",
                "http://a.example.org:8123",
                "http://b.example.org:8123",
                "http://spare.example.org:8123"
            ]
        );
        assert!(found.targets.iter().all(|target| target.endpoint.credentials.user == "ann"));
        assert_eq!((found.targets[3].priority, found.targets[3].weight), (2, 100));
        let mut native = record("https://x");
        native.like.native_port = Some(9440);
        assert_eq!(shown(&native.read(&answer(NAME, &targets[1..2])).unwrap()), ["tcps://b.example.org:8123"]);
        let elsewhere = answer("_clickhouse._tcp.example.net", &targets[1..2]);
        assert_eq!(shown(&record("http://x").read(&elsewhere).unwrap()), ["http://b.example.org:8123"], "by a CNAME");
    }

    #[test]
    fn who_names_nobody_is_told_so() {
        let read =
            |targets: &[(u16, u16, u16, &str, u32)]| record("http://x").read(&answer(NAME, targets)).unwrap_err();
        assert_eq!(read(&[]), "it names no server");
        assert_eq!(read(&[(0, 0, 1, ".", 1)]), "it names no server");
        assert!(read(&[(0, 0, 0, "a", 1)]).contains("port 0"));
        assert!(read(&[(0, 0, 1, "a b", 1)]).contains("no server"));
        let many: Vec<_> = (0..65).map(|port| (0, 0, port + 1, "a", 1)).collect();
        assert!(read(&many).contains("65 servers"));
    }

    /// Runs a name server that answers the first questions, and is silent then.
    async fn name_server(answers: usize) -> SocketAddr {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut question = [0; 1500];
            for _ in 0..answers {
                let (_, from) = socket.recv_from(&mut question).await.unwrap();
                let mut answer = answer(NAME, &[(0, 0, 8123, "a.example.org", 60)]);
                answer[..2].copy_from_slice(&question[..2]);
                // It is an answer.
                answer[2] |= 0x80;
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn nothing_is_left_of_a_lookup() {
        const LOOKUPS: usize = 20;
        let mut record = record("http://x");
        record.server = Some(name_server(LOOKUPS).await);
        for _ in 0..LOOKUPS {
            assert_eq!(shown(&record.look_up().await.unwrap()), ["http://a.example.org:8123"]);
        }
        let tasks = tokio::runtime::Handle::current().metrics();
        while tasks.num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn what_is_cut_off_or_damaged_names_nobody_new() {
        let whole = answer(NAME, &[(1, 1, 1, "a", 1), (1, 1, 2, "b", 1)]);
        let record = record("http://x");
        for length in 0..whole.len() {
            assert!(record.read(&whole[..length]).is_err(), "{length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = record.read(&damaged);
        }
    }
}
