//! Runs of the `kiln` command.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The command with these arguments and nothing to read.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    command.args(arguments).stdin(Stdio::null());
    command
}

pub fn kiln(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

pub fn kiln_reading(arguments: &[&str], input: &str) -> Output {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    stdin
        .write_all(input.as_bytes())
        .expect("it reads its input");
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub fn assert_ends(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}\n{}",
        out(output),
        err(output)
    );
}
