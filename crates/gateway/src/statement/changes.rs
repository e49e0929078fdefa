use windrow_sql::OtherStatement;

use super::deduplication::RowRemoval;
use crate::cluster::{Change, Gone};
use crate::state::State;

/// What a forwarded statement may change, as far as gathering is concerned.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) session: bool,
    /// Tables or rights: what was asked about them.
    pub(crate) learnt: bool,
    pub(crate) gone: Option<RowRemoval>,
}

impl Changes {
    pub(crate) fn of(statement: Option<&OtherStatement>, reason: &str) -> Changes {
        match statement {
            Some(statement) => Changes {
                session: statement.changes_session(),
                learnt: statement.is_ddl() || statement.changes_access(),
                gone: None,
            },
            // Not looked into: it could be anything. An insert that came here changes neither.
            None => {
                let could_be_anything = reason == "unclear";
                Changes { session: could_be_anything, learnt: could_be_anything, gone: None }
            }
        }
    }

    /// Whether it has to be known if the statement was done.
    pub(crate) fn any(&self) -> bool {
        self.learnt || self.gone.is_some()
    }
}

impl State {
    /// The backend has done what the statement asks for.
    pub(crate) async fn have_changed(&self, changes: &Changes) {
        if !changes.any() {
            return;
        }
        let gone = match &changes.gone {
            None => Gone::default(),
            Some(RowRemoval::Of(tables)) => Gone::Of(tables.clone()),
            Some(RowRemoval::OfAnyTable) => Gone::OfAnyTable,
        };
        let change = Change { learnt: changes.learnt, gone };
        self.has_changed_somewhere(&change).await;
        if let Some(cluster) = &self.cluster {
            cluster.tell(&change).await;
        }
    }

    /// Here, or through another gateway.
    pub(crate) async fn has_changed_somewhere(&self, change: &Change) {
        if change.learnt {
            self.forget_what_was_learnt();
        }
        match &change.gone {
            Gone::Of(tables) if tables.is_empty() => {}
            Gone::Of(tables) => self.forget_rows(Some(&RowRemoval::Of(tables.clone()))).await,
            Gone::OfAnyTable => self.forget_rows(Some(&RowRemoval::OfAnyTable)).await,
        }
    }
}
