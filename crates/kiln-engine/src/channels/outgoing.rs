//! What a transaction tells when it commits.

use std::collections::BTreeSet;

use kiln_platform::sync::Arc;
use kiln_procedure::notification::{Notification, check_bytes};
use kiln_storage::error::Result;

/// The notifications of a transaction, each of them once, in the order in which they were sent
/// first.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    list: Vec<Arc<Notification>>,
    known: BTreeSet<Arc<Notification>>,
    bytes: usize,
}

impl Outgoing {
    /// Those of a transaction of one program, which has bounded them.
    pub fn of(sent: Vec<Arc<Notification>>) -> Outgoing {
        let mut outgoing = Outgoing::default();
        sent.into_iter().for_each(|it| outgoing.add(it));
        outgoing
    }

    fn add(&mut self, notification: Arc<Notification>) {
        if self.known.insert(notification.clone()) {
            self.bytes += notification.bytes();
            self.list.push(notification);
        }
    }

    /// Adds those of another program of the transaction.
    ///
    /// # Errors
    /// 54000 when there are too many.
    pub fn extend(&mut self, sent: Vec<Arc<Notification>>) -> Result<()> {
        sent.into_iter().for_each(|it| self.add(it));
        check_bytes(self.bytes)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Notification>> {
        self.list.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The memory that they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
