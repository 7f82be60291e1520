//! Whole statements, from text to rows.
