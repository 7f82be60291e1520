//! Text and binary formats of values.
