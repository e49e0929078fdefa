//! Rights of an account, read from the answer to SHOW GRANTS.
//!
//! The answer is read only for a certain yes. Where a line is written in a way that isn't known here, or a
//! revoke might concern the table, ClickHouse itself is asked.

use windrow_sql::unquoted_names;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    granted: Vec<Grant>,
    revoked: Vec<Grant>,
}

/// Rights that one line grants or revokes, on everything that `scope` names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    insert: bool,
    show_columns: bool,
    scope: Scope,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    Everything,
    Database(String),
    Table(String, String),
    /// A prefix, or another scope that is not read here.
    Unclear,
}

impl Grants {
    /// Reads the grants in force of an account. `own` has the account's own grants and roles, `all` has its
    /// grants together with those of all its roles. `None` if not all of its roles are enabled: then nothing
    /// says which of the grants are in force.
    pub(crate) fn in_force(own: &str, all: &str, enabled_roles: &[String]) -> Option<Grants> {
        let holds = |role: &String| enabled_roles.contains(role);
        roles_of(own)?.iter().all(holds).then(|| Grants::read(all))?
    }

    /// Reads the grants and revokes. `None`: the text isn't an answer to SHOW GRANTS.
    fn read(text: &str) -> Option<Grants> {
        let mut grants = Grants::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("GRANT ") {
                grants.granted.extend(Grant::read(rest, " TO "));
                continue;
            }
            let rest = line.strip_prefix("REVOKE ")?;
            if rest.starts_with("GRANT OPTION FOR ") || rest.starts_with("ADMIN OPTION FOR ") {
                continue;
            }
            let unclear = Grant { insert: false, show_columns: false, scope: Scope::Unclear };
            grants.revoked.push(Grant::read(rest, " FROM ").unwrap_or(unclear));
        }
        Some(grants)
    }

    /// Says whether the account surely may insert into all columns of the table.
    pub(crate) fn allow_insert(&self, database: &str, table: &str) -> bool {
        self.allow(database, table, |grant| grant.insert)
    }

    /// Says whether the account surely sees all columns of the table.
    pub(crate) fn show_columns(&self, database: &str, table: &str) -> bool {
        self.allow(database, table, |grant| grant.show_columns)
    }

    fn allow(&self, database: &str, table: &str, right: impl Fn(&Grant) -> bool) -> bool {
        let granted = self.granted.iter().any(|grant| right(grant) && grant.scope.covers(database, table));
        granted && !self.revoked.iter().any(|revoke| revoke.scope.may_concern(database, table))
    }
}

impl Grant {
    /// Reads a line behind its first word. `None`: it has a role, or is not understood.
    fn read(text: &str, before_grantee: &str) -> Option<Grant> {
        let (rights, rest) = split_outside_quotes(text, " ON ")?;
        let (scope, _) = split_outside_quotes(rest, before_grantee)?;
        // A right on some columns only has them in brackets behind it.
        let rights = rights_of(rights);
        let has = |wanted: &str| rights.iter().any(|right| *right == wanted || *right == "ALL");
        let insert = has("INSERT");
        // Who may read, write or change a table may see its columns.
        let show_columns = insert || has("SHOW COLUMNS") || has("SHOW") || has("SELECT");
        Some(Grant { insert, show_columns, scope: Scope::read(scope) })
    }
}

/// Returns the roles that the lines grant. `None`: one of them is not understood.
fn roles_of(text: &str) -> Option<Vec<String>> {
    let mut roles = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("GRANT ") else { continue };
        if split_outside_quotes(rest, " ON ").is_some() {
            continue;
        }
        let (names, _) = split_outside_quotes(rest, " TO ")?;
        for name in rights_of(names) {
            let [role] = <[String; 1]>::try_from(unquoted_names(name)?).ok()?;
            roles.push(role);
        }
    }
    Some(roles)
}

/// Returns the rights or roles of a list, each with its columns, if it has some.
fn rights_of(list: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in outside_quotes(list) {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                pieces.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(list[start..].trim());
    pieces
}

/// Returns the characters that are not within a quoted name, with their positions. Within a name, a backslash
/// stands before a character that would end it.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.char_indices().filter(move |(_, c)| {
        let was_quoted = is_quoted;
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '`' => is_quoted = !is_quoted,
            _ => {}
        }
        !was_quoted && !is_quoted
    })
}

impl Scope {
    fn read(text: &str) -> Scope {
        if text == "*.*" {
            return Scope::Everything;
        }
        if let Some(database) = text.strip_suffix(".*") {
            return match unquoted_names(database).as_deref() {
                Some([database]) => Scope::Database(database.clone()),
                _ => Scope::Unclear,
            };
        }
        match unquoted_names(text).as_deref() {
            Some([database, table]) => Scope::Table(database.clone(), table.clone()),
            _ => Scope::Unclear,
        }
    }

    fn covers(&self, database: &str, table: &str) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Database(name) => name == database,
            Scope::Table(in_database, name) => in_database == database && name == table,
            Scope::Unclear => false,
        }
    }

    fn may_concern(&self, database: &str, table: &str) -> bool {
        *self == Scope::Unclear || self.covers(database, table)
    }
}

fn split_outside_quotes<'a>(text: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    let at = outside_quotes(text).map(|(at, _)| at).find(|at| text[*at..].starts_with(separator))?;
    Some((&text[..at], &text[at + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_insert(text: &str) -> impl Fn(&str, &str) -> bool {
        let grants = Grants::read(text).expect("an answer to SHOW GRANTS");
        move |database, table| grants.allow_insert(database, table)
    }

    #[test]
    fn grants_on_everything_a_database_or_a_table_are_understood() {
        assert!(may_insert("GRANT ALL ON *.* TO tester WITH GRANT OPTION")("d", "t"));
        let may = may_insert("GRANT SHOW TABLES, SELECT, INSERT ON d.* TO joe\nGRANT INSERT ON `e e`.`t.x` TO joe\n");
        assert!(may("d", "t") && may("e e", "t.x"));
        assert!(!may("e e", "t") && !may("f", "t"));
    }

    #[test]
    fn some_columns_are_not_all_of_them() {
        assert!(!may_insert("GRANT SELECT, INSERT(a, `b,c`), SHOW COLUMNS ON d.t TO joe")("d", "t"));
        assert!(may_insert("GRANT SELECT(a, b), INSERT ON d.t TO joe")("d", "t"));
    }

    #[test]
    fn a_revoke_that_might_matter_makes_it_unclear() {
        let text = "GRANT INSERT ON *.* TO joe\nREVOKE INSERT ON d.secret FROM joe\nREVOKE SELECT ON e.* FROM joe";
        let may = may_insert(text);
        assert!(may("d", "t") && may("f", "t"));
        assert!(!may("d", "secret") && !may("e", "t"), "a revoke of anything is left to ClickHouse");
        assert!(!may_insert("GRANT INSERT ON *.* TO joe\nREVOKE INSERT ON d.s* FROM joe")("x", "y"));
    }

    #[test]
    fn names_with_quotes_in_them_neither_hide_a_revoke_nor_forge_a_grant() {
        for revoke in ["REVOKE INSERT ON d.`a\\`b` FROM joe", "REVOKE INSERT(`x\\`y`) ON d.t FROM joe"] {
            let may = may_insert(&format!("GRANT INSERT ON *.* TO joe\n{revoke}"));
            assert!(!may("d", "a`b") || !may("d", "t"), "{revoke}");
        }
        let may = may_insert("GRANT SELECT(`\\`), INSERT ON *.* TO x`) ON d.t TO joe");
        assert!(!may("d", "t") && !may("e", "t"));
        assert!(!may_insert("GRANT INSERT ON d.`a\\nb` TO joe")("d", "anb"));
        let may = may_insert("GRANT INSERT ON *.* TO joe\nREVOKE INSERT ON something new FROM joe");
        assert!(!may("d", "t"), "a revoke that is not understood");
    }

    #[test]
    fn grants_of_roles_count_only_if_all_roles_hold() {
        let all = "GRANT INSERT ON *.* TO joe";
        let in_force = |own: &str, enabled: &[&str]| {
            let enabled: Vec<String> = enabled.iter().map(|role| (*role).to_owned()).collect();
            Grants::in_force(own, all, &enabled).is_some_and(|grants| grants.allow_insert("d", "t"))
        };
        assert!(in_force("GRANT INSERT ON *.* TO joe", &[]));
        assert!(in_force("GRANT writer, `odd, one` TO joe WITH ADMIN OPTION", &["odd, one", "writer"]));
        assert!(!in_force("GRANT SELECT ON d.* TO joe\nGRANT writer TO joe", &[]));
        assert!(!in_force("GRANT writer, reader TO joe", &["writer"]));
    }

    #[test]
    fn what_is_not_understood_gives_nothing() {
        let may = may_insert("GRANT r1 TO joe\nGRANT INSERT ON d.pre* TO joe\nGRANT FILE ON FILE TO joe\nGRANT READ ON URL(`a ON b`) TO joe");
        assert!(!may("d", "prefix") && !may("d", "pre*"));
        assert_eq!(Grants::read("nothing of the kind"), None);
        assert!(!may_insert("")("d", "t"));
        let whole = "GRANT SELECT, INSERT ON `d d`.`t` TO joe";
        for length in 0..whole.len() {
            assert!(
                Grants::read(&whole[..length])
                    .is_none_or(|grants| !grants.allow_insert("d d", "t") || whole[..length].contains(" TO ")),
                "cut after {length}"
            );
        }
    }

    #[test]
    fn whose_columns_are_seen() {
        let grants =
            Grants::read("GRANT SHOW TABLES, SHOW COLUMNS ON *.* TO w\nREVOKE SHOW COLUMNS ON d.h FROM w").unwrap();
        assert!(grants.show_columns("d", "t") && !grants.show_columns("d", "h"));
        assert!(!grants.allow_insert("d", "t"));
    }
}
