//! Tables for which ClickHouse may be told to cast nothing: those whose rows come in the columns' own types.

use windrow_columns::DataType;
use windrow_engine::sink::{needs_no_cast, NO_CASTS};

use super::schema::Target;
use super::user::ServerVersion;

impl Target {
    /// Says whether rows bring the column in its own type, so that ClickHouse need not cast the values.
    fn needs_no_cast(&self) -> bool {
        let is_own =
            |sent: &DataType| DataType::parse(&self.type_name).is_ok_and(|own| own.native_name() == sent.native_name());
        self.spec.as_ref().is_some_and(|spec| needs_no_cast(&spec.data_type) && is_own(&spec.data_type))
    }
}

/// The first version of ClickHouse that knows such a setting; earlier ones cast nothing.
const CASTS_SINCE: ServerVersion = ServerVersion { major: 23, minor: 3 };

/// Adds settings with which ClickHouse refuses rows whose columns have other types by the time of the flush.
/// Adds none where rows need a cast, or ClickHouse doesn't know them.
pub(crate) fn refuse_casts(settings: &mut Vec<(String, String)>, targets: &[Target], version: ServerVersion) {
    if version >= CASTS_SINCE && targets.iter().all(Target::needs_no_cast) {
        settings.retain(|(known, _)| NO_CASTS.iter().all(|(name, _)| known != name));
        settings.extend(NO_CASTS.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    settings.sort_unstable();
}
