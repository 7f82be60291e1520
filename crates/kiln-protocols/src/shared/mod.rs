//! What several accesses are built from. Nothing here knows a protocol.

pub mod core_slots;
pub mod emptied;
pub mod in_place;
pub mod index_changes;
pub mod links;
pub mod locked;
pub mod locks;
pub mod node_set;
pub mod optimistic;
pub mod planning;
pub mod positions;
pub mod ranges;
pub mod record_map;
pub mod record_set;
pub mod recorder;
pub mod report;
pub mod ring;
pub mod scratch;
pub mod trials;
pub mod unwinding;
pub mod updates;
pub mod workers;
