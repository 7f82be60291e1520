//! The procedure IR, its analysis and its executor.
