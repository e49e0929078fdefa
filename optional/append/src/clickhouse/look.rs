//! Looks at the tables of an append: before it is published, and when an answer was lost.

use windrow_clickhouse::CallError;

use super::evidence::{SeenPart, Sight};
use super::publication::{PlannedPart, Publication};
use super::server::Session;
use super::statements::{rename, Name};
use crate::id::AppendId;

/// The staging table when it is complete, and the target before anything of it.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) parts: Vec<PlannedPart>,
    pub(super) unpacked_bytes: u64,
    pub(super) target_uuid: Option<String>,
    pub(super) newest_block: i64,
}

const STAGED: &str = "SELECT toString(uuid), partition_id, toString(rows), toString(data_uncompressed_bytes) FROM \
    system.parts WHERE database = {database:String} AND table = {table:String} AND active AND rows > 0 ORDER BY \
    min_block_number FORMAT JSONCompactEachRow";
const TARGET: &str =
    "SELECT toString(uuid), toString((SELECT max(max_block_number) FROM system.parts WHERE database = \
    {database:String} AND table = {table:String})) FROM system.tables WHERE database = {database:String} AND name = \
    {table:String} FORMAT JSONCompactEachRow";
const PARTS: &str =
    "SELECT name, toString(uuid), toString(table = {table:String}), toString(active) FROM system.parts \
    WHERE database = {database:String} AND table IN ({table:String}, {staging:String}) AND uuid != \
    toUUID('00000000-0000-0000-0000-000000000000') FORMAT JSONCompactEachRow";
const SET_ASIDE: &str = "SELECT toString(count()) FROM system.detached_parts WHERE database = {database:String} AND \
    table = {staging:String} FORMAT JSONCompactEachRow";
const STAGING: &str = "SELECT name FROM system.tables WHERE database = {database:String} AND startsWith(name, \
    {staging:String}) ORDER BY length(name), name FORMAT JSONCompactEachRow";
const RUNNING: &str =
    "SELECT toString(count()) FROM system.processes WHERE query_id = {id:String} FORMAT JSONCompactEachRow";

pub(super) async fn staged(session: &Session, staging: &Name, target: &Name) -> Result<Staged, CallError> {
    let of_staging = of(staging);
    let of_target = of(target);
    let (parts, target) = tokio::try_join!(session.ask(STAGED, &of_staging), session.ask(TARGET, &of_target))?;
    let (mut planned, mut unpacked_bytes) = (Vec::new(), 0u64);
    for [uuid, partition, rows, bytes] in rows_of(&parts) {
        unpacked_bytes = unpacked_bytes.saturating_add(number(&bytes));
        planned.push(PlannedPart { uuid, partition, rows: number(&rows) });
    }
    let target: Option<[String; 2]> = rows_of(&target).next();
    let newest_block = target.as_ref().map_or(0, |[_, newest]| newest.parse().unwrap_or(i64::MAX));
    Ok(Staged { parts: planned, unpacked_bytes, target_uuid: target.map(|[uuid, _]| uuid), newest_block })
}

/// Returns all staging tables that there are of an append; mostly one.
pub(super) async fn staging_tables(session: &Session, target: &Name, id: AppendId) -> Result<Vec<Name>, CallError> {
    let wanted = target.staging(id);
    let parameters = [("database", wanted.database.as_str()), ("staging", wanted.table.as_str())];
    let found = session.ask(STAGING, &parameters).await?;
    let name = |[table]: [String; 1]| Name { database: wanted.database.clone(), table };
    Ok(rows_of(&found).map(name).collect())
}

/// Sees to it that no earlier statement can still have an effect: the staging table gets another name, which
/// a late statement does not find, and a running statement is waited for. Returns `None` if there is no
/// staging table.
pub(super) async fn fence(
    session: &Session,
    id: AppendId,
    publication: &Publication,
    query_id: &str,
) -> Result<Option<Name>, CallError> {
    let target = publication.target();
    let Some(staging) = staging_tables(session, &target, id).await?.pop() else { return Ok(None) };
    let renamed = next_name(&target.staging(id), &staging);
    session.run(&rename(&staging, &renamed)).await?;
    while is_running(session, query_id).await? {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Ok(Some(renamed))
}

/// Returns a name that no earlier statement has.
fn next_name(first: &Name, now: &Name) -> Name {
    let number = now.table.strip_prefix(&first.table).and_then(|rest| rest.strip_prefix('_')?.parse().ok());
    let next = number.unwrap_or(0u64).saturating_add(1);
    Name { table: format!("{}_{next}", first.table), ..first.clone() }
}

async fn is_running(session: &Session, query_id: &str) -> Result<bool, CallError> {
    let running = session.ask(RUNNING, &[("id", query_id)]).await?;
    Ok(first_number(&running) > 0)
}

pub(super) async fn sight(session: &Session, staging: Option<&Name>, target: &Name) -> Result<Sight, CallError> {
    let staging_name = staging.map_or("", |staging| staging.table.as_str());
    let [database, table] = of(target);
    let parameters = [database, table, ("staging", staging_name)];
    let of_staging = [database, ("staging", staging_name)];
    let of_target = [database, table];
    let (parts, set_aside, of_target) = tokio::try_join!(
        session.ask(PARTS, &parameters),
        session.ask(SET_ASIDE, &of_staging),
        session.ask(TARGET, &of_target)
    )?;
    let part = |[name, uuid, in_target, active]: [String; 4]| SeenPart {
        name,
        uuid,
        in_staging: in_target != "1",
        is_active: active == "1",
    };
    let of_target: Option<[String; 2]> = rows_of(&of_target).next();
    let newest_block = of_target.as_ref().map_or(0, |[_, newest]| newest.parse().unwrap_or(i64::MAX));
    Ok(Sight {
        parts: rows_of(&parts).map(part).collect(),
        has_staging: staging.is_some(),
        set_aside: first_number(&set_aside),
        newest_block,
        target_uuid: of_target.map(|[uuid, _]| uuid),
    })
}

fn of(name: &Name) -> [(&'static str, &str); 2] {
    [("database", &name.database), ("table", &name.table)]
}

fn rows_of<const N: usize>(text: &str) -> impl Iterator<Item = [String; N]> + '_ {
    text.lines().filter_map(|line| {
        let fields: Vec<String> = serde_json::from_str(line).ok()?;
        fields.try_into().ok()
    })
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

fn first_number(text: &str) -> u64 {
    rows_of(text).next().map_or(0, |[count]: [String; 1]| number(&count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_given_twice() {
        let first = Name { database: "d".to_owned(), table: "t".to_owned() }.staging(AppendId::from_u128(9));
        let mut names = vec![first.clone()];
        for _ in 0..12 {
            let next = next_name(&first, names.last().unwrap());
            assert!(!names.contains(&next), "{next:?}");
            names.push(next);
        }
        assert!(names[12].table.ends_with("9_12"), "{:?}", names[12]);
    }

    #[test]
    fn answers_are_read_and_rubbish_is_left_out() {
        let rows: Vec<[String; 2]> = rows_of("[\"a\",\"1\"]\n[\"b\"]\nnonsense\n[\"c\",\"2\"]\n").collect();
        assert_eq!(rows, [["a", "1"], ["c", "2"]].map(|row| row.map(str::to_owned)));
        assert_eq!(first_number("[\"17\"]"), 17);
        assert_eq!(first_number(""), 0);
    }
}
