use crate::admission::UserKey;
use crate::insert::Param;
use crate::state::State;

/// What goes along with a statement, whatever protocol it came by.
pub(crate) struct StatementContext<'a> {
    pub(crate) state: &'a State,
    /// Who sends it; where that is unclear, it is asked about as Windrow's own account.
    pub(crate) user_key: UserKey,
    /// Whether it is clear who sends it.
    pub(crate) names_user: bool,
    /// Settings, and query parameters as `param_name`.
    pub(crate) params: &'a [Param<'a>],
    pub(crate) query_id: Option<&'a str>,
    /// Whether another gateway sends it, which may do so again when it has not heard the answer.
    pub(crate) came_by_hop: bool,
    /// Whether an insert is this gateway's, whoever owns it.
    pub(crate) stays_here: bool,
}

impl StatementContext<'_> {
    pub(crate) fn user(&self) -> &str {
        &self.user_key.credentials.user
    }

    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|param| param.name() == name).and_then(Param::text)
    }

    /// The value of `{name:...}` in the statement. None without one, with several, or with one that isn't text.
    pub(crate) fn query_parameter(&self, name: &str) -> Option<String> {
        query_parameter(self.params, name)
    }

    pub(crate) async fn current_database(&self) -> String {
        let user = self.state.admission.user(self.user_key.clone()).await;
        user.map_or_else(|_| "default".to_owned(), |user| user.database.clone())
    }
}

pub(crate) fn query_parameter(params: &[Param<'_>], name: &str) -> Option<String> {
    let is_it = |param: &&Param| param.name().strip_prefix("param_") == Some(name);
    let mut values = params.iter().filter(is_it);
    let value = values.next()?.text().filter(|value| !value.is_empty())?;
    values.next().is_none().then(|| value.to_owned())
}
