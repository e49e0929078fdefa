//! A form of several parts, in which ClickHouse takes a query together with external tables.

pub(crate) struct Multipart {
    boundary: String,
    body: Vec<u8>,
}

/// A form that is ready to be sent.
pub(crate) struct Form {
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

impl Multipart {
    pub(crate) fn new() -> Multipart {
        let boundary = std::iter::repeat_with(fastrand::alphanumeric).take(48).collect();
        Multipart { boundary, body: Vec::new() }
    }

    /// Adds a field. Its name is the gateway's own, so nothing in it has to be quoted.
    pub(crate) fn field(&mut self, name: &str, content: &[u8]) {
        self.part(&format!("name=\"{name}\""), &[content]);
    }

    /// Adds a field with content in pieces, which is taken for a table's rows.
    pub(crate) fn table(&mut self, name: &str, pieces: &[&[u8]]) {
        self.part(&format!("name=\"{name}\"; filename=\"{name}\""), pieces);
    }

    fn part(&mut self, disposition: &str, pieces: &[&[u8]]) {
        let head = format!("--{}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n", self.boundary);
        self.body.extend_from_slice(head.as_bytes());
        pieces.iter().for_each(|piece| self.body.extend_from_slice(piece));
        self.body.extend_from_slice(b"\r\n");
    }

    pub(crate) fn end(mut self) -> Form {
        self.body.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        Form { content_type: format!("multipart/form-data; boundary={}", self.boundary), body: self.body }
    }
}
