//! The description of a table for a pipeline that writes into it. The backend is asked with the gateway's own
//! account, and anew each time, since a pipeline asks when something has changed.

use std::sync::Arc;

use windrow_clickhouse::Credentials;
use windrow_columns::DefaultKind;
use windrow_engine::sink::{Destination, Form, Partitioning};
use windrow_kafka::pipeline::{TableColumn, TableDescription, TableError};

use super::table_error;
use crate::admission::{
    refuse_casts, Admission, NotAdmitted, Probe, ServerVersion, TableKey, TableSchema, Target, UserContext, UserKey,
};
use crate::insert::recognised;
use crate::sql_backend::SETTINGS;

pub(super) async fn describe(
    admission: &Arc<Admission>,
    database: &str,
    table: &str,
    exactly_once: bool,
) -> Result<TableDescription, TableError> {
    let is_sql = !admission.backend().takes_requests();
    let database = admission.backend().canonical_database(database);
    let key = TableKey { database, table: table.to_owned() };
    let own = admission.backend().own_credentials().clone();
    let schema = admission.table_anew(&key).await.map_err(table_error)?;
    let user = match is_sql {
        true => UserFacts::of_sql(),
        false => UserFacts::of(&*own_user(admission, &own).await?, schema.has_views),
    };
    let mut destination = Destination {
        database: key.database.clone(),
        table: key.table.clone(),
        columns: Vec::new(),
        form: Form::Native { types: Vec::new() },
        credentials: own,
        own_account: true,
        roles: Vec::new(),
        quota_key: String::new(),
        shard: None,
        settings: user.flush_settings(&schema),
        deduplicates: schema.window.recognises_batches(),
        has_views: schema.has_views,
        hands_on: schema.hands_on,
        is_replicated: schema.is_replicated,
        partitioning: schema
            .is_partitioned()
            .then(|| Partitioning { key: schema.partition_key(&user.time_zone), max_per_insert: user.max_partitions }),
    };
    let columns = columns(&schema);
    let description = TableDescription {
        columns,
        destination: destination.clone(),
        no_deduplication: admission.obstacle(&schema),
        time_zone: user.time_zone,
        server_version: user.version,
        settings: user.settings,
    };
    // Who may not insert is told before anything is fetched, and before a table is changed.
    probe(admission, &description).await?;
    if !exactly_once || is_sql {
        return Ok(description);
    }
    let given = admission.give_windows(&key, &schema).await;
    destination.deduplicates = given.is_ok();
    let no_deduplication = given.err().or_else(|| admission.obstacle(&schema));
    Ok(TableDescription { destination, no_deduplication, ..description })
}

async fn own_user(admission: &Admission, own: &Credentials) -> Result<Arc<UserContext>, TableError> {
    let key = UserKey::of(own);
    admission.user(key).await.map_err(|error| {
        TableError::Unavailable(match error {
            NotAdmitted::Unreachable(text) => text,
            NotAdmitted::Busy => "the backend is too busy to say who Windrow's own account is".to_owned(),
            NotAdmitted::Refused(_) | NotAdmitted::Forward(_) => {
                "the backend doesn't say what Windrow's own account may do".to_owned()
            }
        })
    })
}

async fn probe(admission: &Admission, description: &TableDescription) -> Result<(), TableError> {
    let destination = Destination {
        columns: description.columns.iter().map(|column| column.name.clone()).collect(),
        ..description.destination.clone()
    };
    let probe = Probe { destination: &destination, other_settings: &[], database: None };
    admission.ask_for_own(&probe).await.map_err(table_error)
}

fn columns(schema: &TableSchema) -> Vec<TableColumn> {
    let writable = schema
        .columns()
        .iter()
        .filter(|column| matches!(column.default_kind, DefaultKind::None | DefaultKind::Default));
    let column = |column: &crate::admission::Column| TableColumn {
        name: column.name.clone(),
        type_name: column.type_name.clone(),
        data_type: column.data_type.clone(),
        default_kind: column.default_kind,
    };
    writable.map(column).collect()
}

/// Facts about the gateway's own account at the backend.
struct UserFacts {
    time_zone: String,
    version: Option<(u32, u32)>,
    /// Settings of the account's profile, and those whose defaults differ between versions.
    settings: Vec<(String, String)>,
    /// Settings that every flush carries, whatever it writes.
    switched_on: Vec<(String, String)>,
    max_partitions: Option<u64>,
}

impl UserFacts {
    fn of_sql() -> UserFacts {
        let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        UserFacts {
            time_zone: "UTC".to_owned(),
            version: None,
            settings,
            switched_on: Vec::new(),
            max_partitions: None,
        }
    }

    fn of(user: &UserContext, has_views: bool) -> UserFacts {
        // A batch is all or nothing because ClickHouse takes it as one block.
        const LIMITS: &str = "use_strict_insert_block_limits";
        let one_block = user.setting(LIMITS).is_some_and(|value| value != "0").then_some((LIMITS, "0"));
        // The profile may have it off, and the batch's own token is all that a repeat is known by.
        let switched_on = recognised(user, has_views).into_iter().chain(one_block);
        let max: Option<u64> = user.setting("max_partitions_per_insert_block").and_then(|text| text.parse().ok());
        let throws = user.setting("throw_on_max_partitions_per_insert_block") != Some("0");
        let version = Some((user.version.major, user.version.minor));
        let settings = user.effective_settings.iter().chain(&user.changed_settings).cloned().collect();
        UserFacts {
            time_zone: user.timezone.clone(),
            version,
            settings,
            switched_on: switched_on.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            max_partitions: max.filter(|max| throws && *max > 0),
        }
    }

    /// Returns the settings that a flush into this table carries, sorted by name.
    fn flush_settings(&self, schema: &TableSchema) -> Vec<(String, String)> {
        let mut settings = self.switched_on.clone();
        let targets: Vec<Target> = schema.targets().collect();
        let version = self.version.map(|(major, minor)| ServerVersion { major, minor });
        refuse_casts(&mut settings, &targets, version.unwrap_or_default());
        settings
    }
}
