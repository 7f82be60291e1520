//! What is said of objects: `pg_description` and `pg_shdescription`.

use super::snapshot::{CommentClass, Snapshot};
use super::values::{Row, integer, oid, text};

impl Snapshot {
    /// What is said of an object, or of a column of it, in one of the relations that are `wanted`.
    pub fn comment(
        &self,
        object: u32,
        column: i32,
        wanted: impl Fn(CommentClass) -> bool,
    ) -> Option<&str> {
        let mut comments = self.comments.iter();
        comments
            .find(|it| it.object == object && it.column == column && wanted(it.class))
            .map(|comment| comment.text.as_str())
    }
}

/// What is said of objects of the database.
pub(super) fn pg_description(snapshot: &Snapshot) -> Vec<Row> {
    let comments = snapshot.comments.iter();
    let own = comments.filter(|comment| !comment.class.is_shared());
    let rows = own.map(|comment| {
        vec![
            oid(comment.object),
            oid(comment.class.named().1),
            integer(comment.column),
            text(&comment.text),
        ]
    });
    rows.collect()
}

/// What is said of roles and of the database itself.
pub(super) fn pg_shdescription(snapshot: &Snapshot) -> Vec<Row> {
    let comments = snapshot.comments.iter();
    let shared = comments.filter(|comment| comment.class.is_shared());
    let rows = shared.map(|comment| {
        vec![
            oid(comment.object),
            oid(comment.class.named().1),
            text(&comment.text),
        ]
    });
    rows.collect()
}
