//! The analysis of a procedure as text and as a graph.
//!
//! [`text`] prints one line an operation: what it does, by which key, which columns it reads and
//! writes, what feeds it, and whether its records can be named from the arguments:
//!
//! ```text
//! op  operation              key                            columns              depends on        footprint   line
//!  0  lookup district        d_w_id = w_id, d_id = d_id                                            arguments     12
//!  1  read district          record of 0                    reads d_next_o_id    key ← 0           arguments     12
//!     if found by 0
//!  2    lookup orders        o_id = op 1.d_next_o_id - 1    …                    key ← 1, 0        data of 1     14
//! ```
//!
//! [`updates`] says of every column that is updated whether that can be deferred to the commit.
//! [`tables`] and [`conflicts`] look at several procedures: column groups, and which statements can
//! conflict.
//!
//! [`healing`] says of each operation how a protocol that heals restores it, and what follows from
//! that.
//!
//! [`tree`] shows the operations as a tree of nodes with PostgreSQL's names, for programs that read
//! plans.
//!
//! [`dot`] draws the same dependencies for Graphviz.

mod graph;
mod grid;
mod healing;
mod listing;
mod tables;
mod terms;
mod tree;
mod updates;

pub use graph::dot;
pub use healing::healing;
pub use listing::text;
pub use tables::{conflicts, tables};
pub use tree::{Node, Property, tree};
pub use updates::updates;
