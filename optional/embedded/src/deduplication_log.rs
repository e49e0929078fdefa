//! Repair of a table's deduplication log after ClickHouse was killed.
//!
//! ClickHouse (26.7) records that it has stored a block, and then renames the part from `tmp_insert_<any>` to
//! `<part>`. If it is killed between the two, it takes the next insert with that deduplication token for a
//! repeat, answers that the insert is stored, and stores nothing. So before each start the records of such
//! parts are withdrawn, in ClickHouse's own form: a line `2 <tab> part <tab> block id` after the line `1
//! <tab> part <tab> block id`.
//!
//! The cost is a listing of each table's folder, and a reading of the log where an insert was in progress.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation};

const UNFINISHED: &str = "tmp_insert_";
const LOGS: &str = "deduplication_logs";
/// The number of latest records that are checked: more than the inserts that one table has in progress. Parts
/// of older records may be gone for good reasons.
const LATEST: usize = 1_000;

/// The result of a repair.
#[derive(Debug, PartialEq, Eq)]
pub enum Mended {
    /// The number of records that were withdrawn.
    Records(usize),
    /// Another ClickHouse still works on these files.
    InUse,
    /// No ClickHouse has ever worked here.
    NoData,
}

/// Repairs the deduplication logs of all tables. `data` is ClickHouse's setting `path`. Tables on other disks
/// are not checked.
///
/// # Errors
/// Fails where a file or folder can't be read, or a withdrawal can't be written.
pub fn mend_deduplication_logs(data: &Path) -> io::Result<Mended> {
    let status = match File::open(data.join("status")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Mended::NoData),
        status => status?,
    };
    // The lock that ClickHouse takes itself.
    match flock(&status, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Mended::InUse),
        locked => locked?,
    }
    let mut records = 0;
    for parent in ["store", "data"] {
        for folder in folders_in(&data.join(parent))? {
            for table in folders_in(&folder)? {
                records += mend_table(&table)?;
            }
        }
    }
    Ok(Mended::Records(records))
}

fn mend_table(table: &Path) -> io::Result<usize> {
    let names = names_in(table)?;
    if !names.iter().any(|name| name.starts_with(UNFINISHED)) {
        return Ok(0);
    }
    let parts: Vec<Part<'_>> = names.iter().filter_map(|name| Part::parse(name)).collect();
    withdraw(&table.join(LOGS), |recorded| parts.iter().any(|part| part.covers(recorded)))
}

/// Withdraws the latest records of parts that are not there. A table without a log has no records.
fn withdraw(logs: &Path, is_there: impl Fn(&Part<'_>) -> bool) -> io::Result<usize> {
    let mut files: Vec<(u64, PathBuf)> =
        names_in(logs)?.iter().filter_map(|name| Some((number_of(name)?, logs.join(name)))).collect();
    files.sort_unstable();
    let mut lines = Vec::new();
    for (_, file) in &files {
        lines.extend(String::from_utf8_lossy(&fs::read(file)?).lines().map(str::to_owned));
    }
    // By block id, the part that has it.
    let mut lost: BTreeMap<&str, &str> = BTreeMap::new();
    for line in &lines[lines.len().saturating_sub(LATEST)..] {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["1", part, block] if Part::parse(part).is_some_and(|part| !is_there(&part)) => lost.insert(block, part),
            [_, _, block] => lost.remove(block),
            _ => None,
        };
    }
    let Some((_, last)) = files.last().filter(|_| !lost.is_empty()) else { return Ok(0) };
    let withdrawals: String = lost.iter().map(|(block, part)| format!("2\t{part}\t{block}\n")).collect();
    let mut file = OpenOptions::new().append(true).open(last)?;
    file.write_all(withdrawals.as_bytes())?;
    file.sync_all()?;
    tracing::warn!(
        log = %last.display(),
        records = lost.len(),
        "ClickHouse was killed while it stored a block, and had recorded it too early: the record was withdrawn"
    );
    Ok(lost.len())
}

/// Returns the number in the name `deduplication_log_<number>.txt`.
fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("deduplication_log_")?.strip_suffix(".txt")?.parse().ok()
}

/// The name of a part: `<partition>_<first block>_<last block>_<level>`, and a mutation's number behind it.
struct Part<'a> {
    partition: &'a str,
    first: u64,
    last: u64,
}

impl<'a> Part<'a> {
    fn parse(name: &'a str) -> Option<Part<'a>> {
        match name.split('_').collect::<Vec<_>>()[..] {
            [partition, first, last, _] | [partition, first, last, _, _] => {
                Some(Part { partition, first: first.parse().ok()?, last: last.parse().ok()? })
            }
            _ => None,
        }
    }

    fn covers(&self, other: &Part<'_>) -> bool {
        self.partition == other.partition && self.first <= other.first && other.last <= self.last
    }
}

fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    // A symbolic link is no folder here: it leads to one that is looked at anyway.
    let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    Ok(entries_in(folder)?.iter().filter(|entry| is_folder(entry)).map(DirEntry::path).collect())
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    Ok(entries_in(folder)?.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// Returns the entries of a folder; none where there is no such folder.
fn entries_in(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Table(PathBuf);

    impl Table {
        /// Creates a table's folder with these parts, and its logs.
        fn new(name: &str, folders: &[&str], logs: &[&str]) -> Table {
            let data = std::env::temp_dir().join(format!("windrow-deduplication-log-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&data);
            let table = data.join("store/abc/abcdef");
            for folder in [folders, &[LOGS]].concat() {
                fs::create_dir_all(table.join(folder)).expect("a folder");
            }
            fs::write(data.join("status"), "").expect("a status");
            for (number, log) in logs.iter().enumerate() {
                let file = format!("{LOGS}/deduplication_log_{}.txt", number + 9);
                fs::write(table.join(file), log).expect("a log");
            }
            Table(data)
        }

        fn mended(&self) -> usize {
            match mend_deduplication_logs(&self.0).expect("mended") {
                Mended::Records(records) => records,
                other => panic!("{other:?}"),
            }
        }

        fn log(&self, number: usize) -> String {
            let file = format!("store/abc/abcdef/{LOGS}/deduplication_log_{number}.txt");
            fs::read_to_string(self.0.join(file)).expect("a log")
        }
    }

    impl Drop for Table {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn records_of_parts_that_never_were_are_withdrawn_once() {
        let logs = ["1\tall_1_1_0\ta\n", "1\tall_2_2_0\tb\n1\tall_3_3_0\tc\n1\tall_3_3_0\td\n"];
        let table = Table::new("withdrawn", &["all_1_1_0", "all_2_2_0", "tmp_insert_all_7_7_0"], &logs);
        assert_eq!(table.mended(), 2);
        assert_eq!(table.log(9), logs[0]);
        assert_eq!(table.log(10), format!("{}2\tall_3_3_0\tc\n2\tall_3_3_0\td\n", logs[1]));
        assert_eq!(table.mended(), 0);
    }

    #[test]
    fn records_of_parts_that_are_there_stay() {
        let log = "1\tall_2_2_0\ta\n1\tp-1_4_4_0\tb\n1\tp-1_5_5_0\tc\n2\tp-1_5_5_0\tc\n";
        let table = Table::new("stay", &["all_1_3_1_7", "p-1_4_4_0", "tmp_insert_all_1_1_0"], &[log]);
        assert_eq!(table.mended(), 0);
        assert_eq!(table.log(9), log);
    }

    #[test]
    fn without_an_insert_under_way_parts_are_gone_for_good_reasons() {
        let log = "1\tall_2_2_0\ta\n";
        assert_eq!(Table::new("no-insert", &["all_1_1_0", "tmp_merge_all_1_2_1"], &[log]).mended(), 0);
    }

    #[test]
    fn so_are_those_of_old_records() {
        let log: String = (0..=LATEST).map(|number| format!("1\tall_{number}_{number}_0\tb{number}\n")).collect();
        assert_eq!(Table::new("old", &["all_1_1000_3", "tmp_insert_all_1_1_0"], &[&log]).mended(), 0);
    }

    #[test]
    fn a_folder_in_use_is_left_alone() {
        let table = Table::new("in-use", &["tmp_insert_all_3_3_0"], &["1\tall_3_3_0\tc\n"]);
        let status = File::open(table.0.join("status")).expect("a status");
        flock(&status, FlockOperation::NonBlockingLockExclusive).expect("a lock");
        assert_eq!(mend_deduplication_logs(&table.0).expect("tried"), Mended::InUse);
        drop(status);
        assert_eq!(table.mended(), 1);
    }
}
