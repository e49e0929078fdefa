//! The file `admissions` of the data directory: what ClickHouse has said of accounts and tables, for a gateway that
//! starts while ClickHouse is away.
//!
//! The first line has the version of the format and the SHA-256 of the rest, which is JSON. The file is
//! written under another name and then renamed, so that it is always whole. Only its owner may read it. It is
//! a cache: a file that is damaged, too long or of another version is reported in the log, and ignored.
//!
//! The file has no passwords. An account is known by a *proof*: PBKDF2 of its name and password with a salt
//! of its own, so slow that somebody who has the file can't try many passwords.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, pbkdf2};
use serde::{Deserialize, Serialize};
use windrow_clickhouse::Credentials;

use super::schema::Marks;
use super::user::UserContext;
use super::windows::Window;

const FIRST_LINE: &str = "windrow admissions 1 ";
/// Bound of the file's length in bytes: a longer file is neither written nor read.
const MOST_BYTES: usize = 16 << 20;
/// Iterations that OWASP advises for PBKDF2 with HMAC-SHA-512: they take a tenth of a second.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(210_000).expect("it is not zero");
const SALT_BYTES: usize = 16;
const PROOF_BYTES: usize = 32;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct KeptAdmissions {
    pub(super) server: KeptServer,
    pub(super) accounts: Vec<KeptAccount>,
    pub(super) tables: Vec<KeptTable>,
}

/// Facts about the server that its answers to clients contain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct KeptServer {
    pub(super) version_suffix: String,
    pub(super) display_name: String,
    pub(super) timezone: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptAccount {
    pub(super) user: String,
    pub(super) roles: Vec<String>,
    pub(super) quota_key: String,
    pub(super) proof: Proof,
    pub(super) context: UserContext,
    pub(super) inserts: Vec<KeptInsert>,
}

/// A kind of insert that ClickHouse allowed the account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptInsert {
    /// Hash that the kind of insert is recognised by: see [`Proof::name_of`].
    pub(super) name: String,
    /// Position of its table among the tables of the file.
    pub(super) table: usize,
    /// Says whether a batch of such inserts is recognised when it comes again.
    pub(super) deduplicates: bool,
    /// Time at which ClickHouse last confirmed all answers that it is based on, in seconds since 1970.
    pub(super) confirmed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptTable {
    pub(super) database: String,
    pub(super) table: String,
    pub(super) columns: Vec<KeptColumn>,
    pub(super) gatherable: bool,
    pub(super) async_insert: bool,
    pub(super) marks: Option<Marks>,
    pub(super) window: Window,
    pub(super) uuid: String,
    pub(super) has_views: bool,
    pub(super) keeps_none: bool,
    pub(super) hands_on: bool,
    pub(super) is_replicated: bool,
    pub(super) has_replicated_engine: bool,
    pub(super) partition_key: String,
    pub(super) computes: bool,
    pub(super) asks_for_rights: bool,
    pub(super) reads_request: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptColumn {
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) default_kind: String,
    pub(super) default_expression: String,
}

/// Proof that an account has a password, which can be checked without a copy of the password.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Proof {
    salt: [u8; SALT_BYTES],
    hash: [u8; PROOF_BYTES],
}

impl Proof {
    /// Makes the proof, which takes a tenth of a second. `None`: the system has no random bytes.
    pub(super) fn of(credentials: &Credentials) -> Option<Proof> {
        let (mut salt, mut hash) = ([0; SALT_BYTES], [0; PROOF_BYTES]);
        SystemRandom::new().fill(&mut salt).ok()?;
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, ITERATIONS, &salt, &secret(credentials), &mut hash);
        Some(Proof { salt, hash })
    }

    /// Says whether name and password are those of the proof. The check takes a tenth of a second.
    pub(super) fn holds_for(&self, credentials: &Credentials) -> bool {
        pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA512, ITERATIONS, &self.salt, &secret(credentials), &self.hash).is_ok()
    }

    /// Returns the hash that a kind of insert of the account is recognised by. `what` has no password in it.
    pub(super) fn name_of(&self, what: &[u8]) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&self.salt);
        context.update(what);
        hex(&context.finish().as_ref()[..16])
    }
}

fn secret(credentials: &Credentials) -> Vec<u8> {
    let (user, password) = (credentials.user.as_bytes(), credentials.password.as_bytes());
    [&(user.len() as u64).to_le_bytes(), user, password].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl KeptInsert {
    /// Returns the time since the last confirmation. `None`: it is in the future, and is not believed.
    pub(super) fn age(&self) -> Option<Duration> {
        seconds_now().checked_sub(self.confirmed).map(Duration::from_secs)
    }
}

impl KeptAdmissions {
    fn encode(&self) -> Option<Vec<u8>> {
        let body = serde_json::to_vec(self).ok()?;
        let mut bytes = format!("{FIRST_LINE}{}\n", hex(digest::digest(&digest::SHA256, &body).as_ref())).into_bytes();
        bytes.extend_from_slice(&body);
        (bytes.len() <= MOST_BYTES).then_some(bytes)
    }

    /// Reads the bytes of a file. Fails with a text that says what is wrong with them.
    fn decode(bytes: &[u8]) -> Result<KeptAdmissions, String> {
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("it has no first line")?;
        let (line, body) = (&bytes[..end], &bytes[end + 1..]);
        let hash = line.strip_prefix(FIRST_LINE.as_bytes()).ok_or("it is of another version, or is something else")?;
        if hash != hex(digest::digest(&digest::SHA256, body).as_ref()).as_bytes() {
            return Err("it is damaged".to_owned());
        }
        let kept: KeptAdmissions = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let tables = kept.tables.len();
        match kept.accounts.iter().flat_map(|account| &account.inserts).all(|insert| insert.table < tables) {
            true => Ok(kept),
            false => Err("it names a table that it doesn't have".to_owned()),
        }
    }

    /// Reads the file. `None`: there is none, or it can't be used.
    pub(super) fn read(path: &Path) -> Option<KeptAdmissions> {
        let read = || -> Result<Option<KeptAdmissions>, String> {
            let file = match fs::File::open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.to_string()),
            };
            let mut bytes = Vec::new();
            file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            match bytes.len() > MOST_BYTES {
                true => Err(format!("it is longer than {MOST_BYTES} bytes")),
                false => KeptAdmissions::decode(&bytes).map(Some),
            }
        };
        read().unwrap_or_else(|why| {
            let path = path.display();
            tracing::warn!(%path, why, "what was known of users and tables can't be read: while ClickHouse is away, nothing is taken before it has answered");
            None
        })
    }

    /// Writes the file in place of the former one. Without accounts, there is no file.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        if self.accounts.is_empty() {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let bytes = self.encode().ok_or_else(|| io::Error::other(format!("more than {MOST_BYTES} bytes")))?;
        let beside = path.with_extension("new");
        let written = (|| {
            // One that a crash has left may belong to somebody else.
            let _ = fs::remove_file(&beside);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&beside, path)
        })();
        written.inspect_err(|_| drop(fs::remove_file(&beside)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::LazyLock;

    use super::super::user::ServerVersion;
    use super::*;

    fn joe() -> Credentials {
        Credentials { user: "joe".into(), password: "secret of joe".into() }
    }

    /// Proof of joe's account, which is made once since that is slow.
    static PROOF: LazyLock<Proof> = LazyLock::new(|| Proof::of(&joe()).unwrap());

    fn kept() -> KeptAdmissions {
        let column = KeptColumn {
            name: "a".into(),
            type_name: "UInt64".into(),
            default_kind: "DEFAULT".into(),
            default_expression: "1".into(),
        };
        let table = KeptTable {
            database: "d".into(),
            table: "t".into(),
            columns: vec![column],
            gatherable: true,
            async_insert: false,
            marks: Some(Marks { column: "s".into(), allowed: [1, -1], has_allowed_default: false }),
            window: Window::Windrows,
            uuid: "1f".into(),
            has_views: false,
            keeps_none: false,
            hands_on: false,
            is_replicated: false,
            has_replicated_engine: false,
            partition_key: String::new(),
            computes: true,
            asks_for_rights: false,
            reads_request: false,
        };
        let context = UserContext {
            database: "d".into(),
            timezone: "UTC".into(),
            version: ServerVersion { major: 26, minor: 7 },
            changed_settings: vec![("a".into(), "1".into())],
            ..UserContext::default()
        };
        let insert =
            KeptInsert { name: PROOF.name_of(b"INSERT"), table: 0, deduplicates: true, confirmed: seconds_now() };
        let account = KeptAccount {
            user: "joe".into(),
            roles: vec!["r".into()],
            quota_key: String::new(),
            proof: PROOF.clone(),
            context,
            inserts: vec![insert],
        };
        let server = KeptServer { version_suffix: "(version 26.7.2.1)".into(), ..KeptServer::default() };
        KeptAdmissions { server, accounts: vec![account], tables: vec![table] }
    }

    #[test]
    fn a_password_is_known_again_and_is_not_there() {
        assert!(PROOF.holds_for(&joe()));
        for (user, password) in
            [("joe", "secret of jo"), ("joes", "ecret of joe"), ("ann", "secret of joe"), ("joe", "")]
        {
            assert!(
                !PROOF.holds_for(&Credentials { user: user.into(), password: password.into() }),
                "{user} {password}"
            );
        }
        let text = String::from_utf8(kept().encode().unwrap()).unwrap();
        assert!(!text.contains("secret of joe") && text.contains("joe"));
        let other = Proof::of(&joe()).unwrap();
        assert!(
            other.hash != PROOF.hash && other.name_of(b"INSERT") != PROOF.name_of(b"INSERT"),
            "its salt is its own"
        );
    }

    #[test]
    fn what_was_written_is_read_by_its_owner_alone() {
        let folder = std::env::temp_dir().join(format!("windrow-admissions-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("admissions");
        assert_eq!(KeptAdmissions::read(&path), None);
        fs::write(path.with_extension("new"), "left by a crash").unwrap();
        kept().write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(KeptAdmissions::read(&path), Some(kept()));
        let mut names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!((names.next(), names.next()), (Some("admissions".into()), None), "nothing else is left");
        KeptAdmissions::default().write(&path).unwrap();
        assert!(!path.exists(), "nothing is known any more");
        fs::write(&path, vec![b' '; MOST_BYTES + 1]).unwrap();
        assert_eq!(KeptAdmissions::read(&path), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_damaged_file_counts_as_none() {
        let whole = kept().encode().unwrap();
        assert_eq!(KeptAdmissions::decode(&whole), Ok(kept()));
        for length in 0..whole.len() {
            assert!(KeptAdmissions::decode(&whole[..length]).is_err(), "cut after {length}");
        }
        let mut random = fastrand::Rng::with_seed(32);
        for round in 0..20_000 {
            let mut damaged = whole.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..damaged.len());
                match random.u8(..3) {
                    0 => damaged[at] ^= 1 << random.u8(..8),
                    1 => drop(damaged.remove(at)),
                    _ => damaged.insert(at, random.u8(..)),
                }
            }
            assert!(damaged == whole || KeptAdmissions::decode(&damaged).is_err(), "seed 32, round {round}");
        }
    }

    #[test]
    fn what_is_sound_but_senseless_counts_as_none() {
        let mut senseless = kept();
        senseless.accounts[0].inserts[0].table = 1;
        assert!(KeptAdmissions::decode(&senseless.encode().unwrap()).is_err());
        let later = kept().encode().unwrap();
        let later = String::from_utf8(later).unwrap().replace("admissions 1", "admissions 2");
        assert!(KeptAdmissions::decode(later.as_bytes()).unwrap_err().contains("version"));
        let mut insert = kept().accounts.remove(0).inserts.remove(0);
        assert!(insert.age().is_some_and(|age| age < Duration::from_secs(60)));
        insert.confirmed += 3_600;
        assert_eq!(insert.age(), None, "it is of the future");
    }
}
