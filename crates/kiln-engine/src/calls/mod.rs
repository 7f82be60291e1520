//! Calls and their outcomes: what a caller asks for, the queues in which calls wait for workers,
//! and the ways in which outcomes reach those that wait for them.

mod answer;
mod call;
mod completions;
mod handle;
mod idempotency;
mod inboxes;
mod promise;
mod reply;
mod ticket;

pub(crate) use answer::{read as read_answer, write_rows};
pub(crate) use call::Target;
pub use call::{Call, IdempotencyKey, Refused, Statement, SubmitError};
pub(crate) use completions::Delivery;
pub use completions::{Completion, Completions};
pub use handle::ProcedureHandle;
pub(crate) use idempotency::{Admission, Idempotency};
pub(crate) use inboxes::{Inboxes, Job, Unplaced, Woken, Work};
pub(crate) use promise::{Promise, Recipient};
pub use reply::{Reply, Rows};
pub(crate) use ticket::Pending;
pub use ticket::Ticket;
