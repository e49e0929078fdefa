//! Statements that the backend answers, and what the gateway has to know about them: do they change tables
//! (its cached schemas are stale), the session (inserts of this session must not be gathered any more), or
//! access (remembered privileges are stale). Where the gateway can't be certain, the answer is yes.

use crate::cursor::Cursor;
use crate::ddl;
use crate::insert::InsertForm;
use crate::lexer::TokenKind;
use crate::names::TableName;

/// The word a statement begins with, behind any opening parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Leading {
    Select,
    With,
    /// `FROM t SELECT x`.
    From,
    Show,
    Describe,
    Explain,
    Exists,
    Check,
    Insert,
    Create,
    Replace,
    Alter,
    Drop,
    Rename,
    Exchange,
    Truncate,
    Attach,
    Detach,
    Undrop,
    Optimize,
    Delete,
    Update,
    Set,
    Use,
    System,
    Kill,
    Grant,
    Revoke,
    Move,
    Begin,
    Commit,
    Rollback,
    Start,
    Execute,
    Backup,
    Restore,
    Watch,
    Unknown,
}

const LEADING_WORDS: &[(&str, Leading)] = &[
    ("SELECT", Leading::Select),
    ("WITH", Leading::With),
    ("FROM", Leading::From),
    ("SHOW", Leading::Show),
    ("DESCRIBE", Leading::Describe),
    ("DESC", Leading::Describe),
    ("EXPLAIN", Leading::Explain),
    ("EXISTS", Leading::Exists),
    ("CHECK", Leading::Check),
    ("INSERT", Leading::Insert),
    ("CREATE", Leading::Create),
    ("REPLACE", Leading::Replace),
    ("ALTER", Leading::Alter),
    ("DROP", Leading::Drop),
    ("RENAME", Leading::Rename),
    ("EXCHANGE", Leading::Exchange),
    ("TRUNCATE", Leading::Truncate),
    ("ATTACH", Leading::Attach),
    ("DETACH", Leading::Detach),
    ("UNDROP", Leading::Undrop),
    ("OPTIMIZE", Leading::Optimize),
    ("DELETE", Leading::Delete),
    ("UPDATE", Leading::Update),
    ("SET", Leading::Set),
    ("USE", Leading::Use),
    ("SYSTEM", Leading::System),
    ("KILL", Leading::Kill),
    ("GRANT", Leading::Grant),
    ("REVOKE", Leading::Revoke),
    ("MOVE", Leading::Move),
    ("BEGIN", Leading::Begin),
    ("COMMIT", Leading::Commit),
    ("ROLLBACK", Leading::Rollback),
    ("START", Leading::Start),
    ("EXECUTE", Leading::Execute),
    ("BACKUP", Leading::Backup),
    ("RESTORE", Leading::Restore),
    ("WATCH", Leading::Watch),
];

/// The tables that a statement creates, changes or takes away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DdlScope {
    None,
    Tables(Vec<TableName>),
    /// All tables of the database.
    Database(String),
    /// Any table of any database, as far as can be told.
    Anything,
}

/// The effects of a statement besides its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effects {
    pub ddl: DdlScope,
    pub session: bool,
    pub access: bool,
    /// Says whether the statement may concern a table that it doesn't name, as a view on a table does.
    pub hangs_on: bool,
}

impl Effects {
    pub const NONE: Effects = Effects { ddl: DdlScope::None, session: false, access: false, hangs_on: false };
    pub const SESSION: Effects = Effects { ddl: DdlScope::None, session: true, access: false, hangs_on: false };
    pub const ACCESS: Effects = Effects { ddl: DdlScope::None, session: false, access: true, hangs_on: false };
    pub const ANY_TABLE: Effects = Effects { ddl: DdlScope::Anything, session: false, access: false, hangs_on: false };
    pub const EVERYTHING: Effects = Effects { ddl: DdlScope::Anything, session: true, access: true, hangs_on: false };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherStatement {
    pub leading: Leading,
    /// The reason why an INSERT is not gathered.
    pub insert_form: Option<InsertForm>,
    effects: Effects,
}

impl OtherStatement {
    pub(crate) fn insert(form: InsertForm) -> Self {
        Self { leading: Leading::Insert, insert_form: Some(form), effects: Effects::NONE }
    }

    pub fn is_ddl(&self) -> bool {
        self.effects.ddl != DdlScope::None
    }

    pub fn ddl_scope(&self) -> &DdlScope {
        &self.effects.ddl
    }

    /// Returns the tables that the statement is about, if everything else stays as it was: other tables,
    /// views on these tables, and privileges. `None` where the statement may change anything. That includes
    /// RENAME and its like, which give a name to another table, and statements that make a view on a table.
    pub fn changes_only(&self) -> Option<&[TableName]> {
        let is_plain = matches!(self.leading, Leading::Create | Leading::Alter | Leading::Drop | Leading::Truncate);
        match &self.effects {
            Effects { ddl: DdlScope::Tables(names), session: false, access: false, hangs_on: false } if is_plain => {
                Some(names)
            }
            _ => None,
        }
    }

    /// Says whether the meaning of later statements of the same session may depend on this one.
    pub fn changes_session(&self) -> bool {
        self.effects.session
    }

    /// Says whether someone may have gained or lost a privilege, or a password.
    pub fn changes_access(&self) -> bool {
        self.effects.access
    }
}

/// Returns the word that a statement begins with. The cursor stands behind the word if it is a known one.
pub(crate) fn leading(cursor: &mut Cursor) -> Leading {
    while cursor.eat_symbol(b'(') {}
    LEADING_WORDS.iter().find(|(word, _)| cursor.eat_keyword(word)).map_or(Leading::Unknown, |&(_, leading)| leading)
}

pub(crate) fn parse(cursor: &mut Cursor) -> OtherStatement {
    let leading = leading(cursor);
    let effects = match leading {
        Leading::Select | Leading::With | Leading::From | Leading::Show | Leading::Describe => Effects::NONE,
        Leading::Explain | Leading::Exists | Leading::Check | Leading::Insert | Leading::Watch => Effects::NONE,
        Leading::System => system_effects(cursor),
        _ => effects_of_whole(leading, cursor),
    };
    OtherStatement { leading, insert_form: None, effects }
}

fn system_effects(cursor: &mut Cursor) -> Effects {
    if !cursor.eat_keyword("RELOAD") {
        return Effects::NONE;
    }
    if cursor.eat_keyword("CONFIG") || cursor.eat_keyword("USERS") {
        Effects::ACCESS
    } else {
        Effects::NONE
    }
}

/// Returns the effects of statements whose end may matter as much as their beginning: `.. PARALLEL WITH ..`
/// joins several.
fn effects_of_whole(leading: Leading, cursor: &mut Cursor) -> Effects {
    let first = match leading {
        Leading::Set => set_effects(cursor),
        Leading::Use | Leading::Begin | Leading::Commit | Leading::Rollback | Leading::Start => Effects::SESSION,
        Leading::Grant | Leading::Revoke | Leading::Move => Effects::ACCESS,
        Leading::Optimize | Leading::Delete | Leading::Update | Leading::Kill | Leading::Backup => Effects::NONE,
        Leading::Restore | Leading::Execute | Leading::Unknown => Effects::EVERYTHING,
        _ => ddl::effects(leading, cursor),
    };
    if rest_has_parallel_with(cursor) {
        Effects::EVERYTHING
    } else {
        first
    }
}

fn set_effects(cursor: &mut Cursor) -> Effects {
    if cursor.eat_keywords("DEFAULT ROLE") {
        return Effects { session: true, ..Effects::ACCESS };
    }
    Effects::SESSION
}

/// Reads to the end of the text, or to `PARALLEL WITH`.
fn rest_has_parallel_with(cursor: &mut Cursor) -> bool {
    loop {
        if cursor.eat_keywords("PARALLEL WITH") {
            return true;
        }
        if cursor.take().kind == TokenKind::End {
            return false;
        }
    }
}
