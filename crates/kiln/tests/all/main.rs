//! The library and the command as their users meet them, in one binary: each would link a whole
//! database otherwise.

mod back_to_its_key;
mod beside_blocks;
mod check;
mod claims;
mod command;
mod command_line;
mod data_directory;
mod examples;
mod flow;
mod pages;
mod rebuild;
mod scan_goes_on;
mod sql_page;
