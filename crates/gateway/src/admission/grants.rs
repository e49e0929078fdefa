//! What an account may do, read from the answer to SHOW GRANTS.
//!
//! Read only for "yes, surely": whatever is written in a way that isn't known here, and every revoke that might concern a
//! table, means that ClickHouse is asked itself.

use windrow_statement::unquoted_names;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    granted: Vec<Grant>,
    revoked: Vec<Grant>,
}

/// One line: rights on everything that `scope` names.
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
    /// A prefix, or something else that is not read.
    Unclear,
}

impl Grants {
    /// `None`: it isn't an answer to SHOW GRANTS.
    pub(crate) fn read(text: &str) -> Option<Grants> {
        let mut grants = Grants::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("GRANT ") {
                grants.granted.extend(Grant::read(rest, " TO "));
            } else {
                let rest = line.strip_prefix("REVOKE ")?;
                let rest = rest.strip_prefix("GRANT OPTION FOR ").map_or(Some(rest), |_| None);
                grants.revoked.extend(rest.and_then(|rest| Grant::read(rest, " FROM ")));
            }
        }
        Some(grants)
    }

    /// Whether the account surely may insert into all columns of the table.
    pub(crate) fn allow_insert(&self, database: &str, table: &str) -> bool {
        self.allow(database, table, |grant| grant.insert)
    }

    /// Whether the account surely sees all columns of the table.
    pub(crate) fn show_columns(&self, database: &str, table: &str) -> bool {
        self.allow(database, table, |grant| grant.show_columns)
    }

    fn allow(&self, database: &str, table: &str, right: impl Fn(&Grant) -> bool) -> bool {
        let granted = self.granted.iter().any(|grant| right(grant) && grant.scope.covers(database, table));
        granted && !self.revoked.iter().any(|revoke| revoke.scope.may_concern(database, table))
    }
}

impl Grant {
    /// `None`: a role, or rights on something that isn't a table.
    fn read(text: &str, before_grantee: &str) -> Option<Grant> {
        let (rights, rest) = split_outside_quotes(text, " ON ")?;
        let (scope, _) = split_outside_quotes(rest, before_grantee)?;
        // A right on some columns only has them in brackets behind it.
        let has = |wanted: &str| rights_of(rights).any(|right| right == wanted || right == "ALL");
        let insert = has("INSERT");
        // Who may read, write or change a table may see its columns.
        let show_columns = insert || has("SHOW COLUMNS") || has("SHOW") || has("SELECT");
        Some(Grant { insert, show_columns, scope: Scope::read(scope) })
    }
}

/// The rights of a list, each with its columns, if it has some.
fn rights_of(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let mut quoted = false;
    let pieces = list.split(move |c| {
        match c {
            '`' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0 && !quoted
    });
    pieces.map(str::trim)
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
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        if c == '`' {
            quoted = !quoted;
        }
        if !quoted && text[at..].starts_with(separator) {
            return Some((&text[..at], &text[at + separator.len()..]));
        }
    }
    None
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
