//! A position among a statement's tokens, with the small steps that the grammar is made of.
//!
//! In a text that may continue, every look at a token that more bytes could change is remembered (`starved`):
//! conclusions after such a look are not final. `ended` remembers that a step failed for want of tokens, not
//! because of a wrong token.

use crate::lexer::{Lexer, Token, TokenKind};
use crate::names::TableName;
use crate::quote::Dialect;

#[derive(Debug, Clone)]
pub(crate) struct Cursor<'t> {
    lexer: Lexer<'t>,
    /// The next token, if it was looked at already. Tokens are not lexed ahead: behind the last token of an
    /// INSERT's head there is data.
    current: Option<Token>,
    previous_end: usize,
    may_continue: bool,
    starved: bool,
    ended: bool,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t [u8], may_continue: bool) -> Self {
        Self { lexer: Lexer::new(text), current: None, previous_end: 0, may_continue, starved: false, ended: false }
    }

    pub fn text(&self) -> &'t [u8] {
        self.lexer.text()
    }

    /// Says whether more bytes could change what was seen so far.
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// Says whether the text ended where a token was expected.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the end of the last token that was taken.
    pub fn previous_end(&self) -> usize {
        self.previous_end
    }

    pub fn may_continue(&self) -> bool {
        self.may_continue
    }

    /// Marks the conclusion as not final for a reason that lies outside of the tokens.
    pub fn starve(&mut self) {
        self.starved = true;
    }

    pub fn peek(&mut self) -> Token {
        let lexer = &mut self.lexer;
        let token = *self.current.get_or_insert_with(|| lexer.next_token());
        self.starved |= self.may_continue && token.may_grow(self.text());
        self.ended |=
            token.kind == TokenKind::End || (token.kind == TokenKind::Error && token.end == self.text().len());
        token
    }

    pub fn take(&mut self) -> Token {
        let token = self.peek();
        self.previous_end = token.end;
        self.current = None;
        token
    }

    pub fn at_symbol(&mut self, symbol: u8) -> bool {
        self.peek().is_symbol(symbol)
    }

    pub fn eat_symbol(&mut self, symbol: u8) -> bool {
        let found = self.at_symbol(symbol);
        if found {
            self.take();
        }
        found
    }

    pub fn at_keyword(&mut self, keyword: &str) -> bool {
        let token = self.peek();
        token.is_keyword(self.text(), keyword)
    }

    pub fn eat_keyword(&mut self, keyword: &str) -> bool {
        let found = self.at_keyword(keyword);
        if found {
            self.take();
        }
        found
    }

    /// Takes all of `keywords` in a row, or nothing.
    pub fn eat_keywords(&mut self, keywords: &str) -> bool {
        let before = self.clone();
        if keywords.split(' ').all(|keyword| self.eat_keyword(keyword)) {
            return true;
        }
        let starved = self.starved;
        *self = before;
        self.starved |= starved;
        false
    }

    pub fn identifier(&mut self) -> Option<String> {
        let token = self.peek();
        let name = token.name(Dialect::ClickHouse, self.text())?;
        self.take();
        Some(name)
    }

    /// Takes a name `table` or `database.table`.
    pub fn table_name(&mut self) -> Option<TableName> {
        let first = self.identifier()?;
        if !self.eat_symbol(b'.') {
            return Some(TableName { database: None, table: first });
        }
        Some(TableName { database: Some(first), table: self.identifier()? })
    }
}
