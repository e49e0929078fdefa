//! What a forwarded INSERT has to say besides so that ClickHouse deduplicates it if, and only if, somebody wants it to.
//!
//! A table may have a window that is Windrow's, for its batches; rows that nobody repeated must not be dropped by it.

use windrow_client::push_param;
use windrow_statement::InsertOutline;

use super::dispatch::Exchange;
use super::forward::Forwarded;
use super::text::Text;
use crate::admission::{TableKey, Window};
use crate::insert::{is_dedup_setting, DedupSettings, DefaultProfile};

/// A statement's settings stand within this.
const LOOKED_THROUGH_BYTES: usize = 64 * 1024;

impl Exchange<'_> {
    /// Of a text that may be an INSERT. Without one, the URL is looked at alone.
    pub(super) fn outline(&self, text: Option<&Text>) -> Option<InsertOutline> {
        let start = match text {
            Some(text) => text.start(LOOKED_THROUGH_BYTES),
            None => self.request.query().to_vec().into(),
        };
        InsertOutline::of(&start, is_dedup_setting)
    }

    /// Adds what is needed to an INSERT that is on its way to the backend.
    pub(super) async fn settle_deduplication(&self, forwarded: &mut Forwarded<'_>, insert: Option<InsertOutline>) {
        let Some(insert) = insert else { return };
        for (name, value) in self.deduplication_of(&insert).await.unwrap_or_default() {
            push_param(&mut forwarded.target, name, value);
        }
    }

    async fn deduplication_of(&self, insert: &InsertOutline) -> Option<Vec<(&'static str, &'static str)>> {
        let in_url = self.request.params.iter().filter_map(|param| Some((param.name(), param.text()?)));
        let in_text = insert.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let said = DedupSettings::of(in_url.chain(in_text));
        let admission = &self.state.admission;
        let credentials = self.credentials().unwrap_or(&admission.client.endpoint().credentials);
        let user = admission.user(self.request.user_key(credentials)).await.ok()?;
        let table = match insert.table_name(|parameter| self.request.query_parameter(parameter)) {
            Some(name) => {
                let database = name.database.unwrap_or_else(|| user.database.clone());
                admission.table(TableKey { database, table: name.table }, credentials).await.ok()
            }
            None => None,
        };
        let (window, has_views) = table.map_or((Window::Never, false), |table| (table.window, table.has_views));
        let profile = DefaultProfile::of(&self.state.options.settings);
        Some(said.additions(window, has_views, &user, profile))
    }
}
