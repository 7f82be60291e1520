//! Notifications: what a program tells the sessions that listen to a channel, once its transaction
//! has committed.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};

/// Bytes of the notifications of one transaction.
pub const NOTIFICATION_BYTES_MAX: usize = 64 << 20;
/// Bytes that a notification costs besides its texts.
const OVERHEAD_BYTES: usize = 64;

/// A notification. Two with the same texts are one where a transaction sends both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notification {
    /// The channel.
    pub channel: Box<str>,
    /// What is told; empty where only the channel counts.
    pub payload: Box<str>,
}

impl Notification {
    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        OVERHEAD_BYTES + self.channel.len() + self.payload.len()
    }
}

/// The notifications that an attempt sends, in order. One word: few attempts send any.
#[derive(Debug, Default)]
pub struct Notifications(Option<Box<Sent>>);

#[derive(Debug, Default)]
struct Sent {
    list: Vec<Arc<Notification>>,
    bytes: usize,
}

impl Notifications {
    /// Adds one, unless it is the same as the last one.
    ///
    /// # Errors
    /// 54000 when they have more than [`NOTIFICATION_BYTES_MAX`] bytes.
    pub(crate) fn push(&mut self, channel: &str, payload: &str) -> Result<()> {
        let sent = self.0.get_or_insert_default();
        if let Some(last) = sent.list.last()
            && (&*last.channel, &*last.payload) == (channel, payload)
        {
            return Ok(());
        }
        let notification = Notification {
            channel: channel.into(),
            payload: payload.into(),
        };
        sent.bytes += notification.bytes();
        check_bytes(sent.bytes)?;
        sent.list.push(Arc::new(notification));
        Ok(())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Forgets all but the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        if let Some(sent) = &mut self.0 {
            let dropped = sent.list.drain(count.min(sent.list.len())..);
            sent.bytes -= dropped.map(|it| it.bytes()).sum::<usize>();
        }
    }

    /// Forgets all.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// All of them.
    #[inline]
    pub fn as_slice(&self) -> &[Arc<Notification>] {
        self.0.as_ref().map_or(&[], |sent| &sent.list)
    }
}

/// Checks that a transaction may send notifications of so many bytes.
///
/// # Errors
/// 54000.
pub fn check_bytes(bytes: usize) -> Result<()> {
    if bytes <= NOTIFICATION_BYTES_MAX {
        return Ok(());
    }
    let message = "the transaction sends too many notifications";
    let detail = format!("They have more than {NOTIFICATION_BYTES_MAX} bytes.");
    Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_detail(detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(sent: &Notifications) -> usize {
        sent.0.as_ref().map_or(0, |sent| sent.bytes)
    }

    #[test]
    fn a_part_is_forgotten_with_its_bytes() {
        let mut sent = Notifications::default();
        sent.push("a", "1").expect("there is room");
        sent.push("a", "1").expect("it is the same");
        let before = bytes(&sent);
        sent.push("a", "2").expect("there is room");
        sent.push("b", "2").expect("there is room");
        assert_eq!(sent.len(), 3);
        sent.truncate(1);
        assert_eq!((sent.len(), bytes(&sent)), (1, before));
        sent.clear();
        assert_eq!((sent.len(), bytes(&sent)), (0, 0));
    }

    #[test]
    fn a_transaction_sends_so_much() {
        let mut sent = Notifications::default();
        let payload = "x".repeat(1 << 20);
        let fit =
            (0..100).take_while(|iteration| sent.push(&iteration.to_string(), &payload).is_ok());
        assert_eq!(fit.count(), 63);
    }
}
