//! What a figure was measured on: a rate without its machine says nothing.

use std::path::Path;
use std::process::{Command, Stdio};

use kiln_platform::{file, thread, time};
use kiln_storage::types::Value;

/// The machine, and the state of the program on it.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's model name.
    pub cpu: String,
    /// Cores that this process may run on.
    pub cores: usize,
    /// Main memory in bytes, where the system says.
    pub memory_bytes: Option<u64>,
    /// The operating system and the architecture.
    pub os: String,
    /// The commit of the checkout that the program lies in, marked `-dirty` when files differ from
    /// it; none when the program lies in no checkout.
    pub commit: Option<String>,
    /// When the machine was asked, in UTC.
    pub date: String,
    /// Whether the program was built without optimisation, so that its figures mean little.
    pub unoptimised: bool,
}

impl Machine {
    /// This machine, now.
    pub fn current() -> Machine {
        Machine {
            cpu: processor().unwrap_or_else(|| "unknown processor".to_owned()),
            cores: thread::available_cores(),
            memory_bytes: memory_bytes(),
            os: operating_system(),
            commit: commit(),
            date: date(),
            unoptimised: cfg!(debug_assertions),
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let mut line = format!("{}, {} cores", self.cpu, self.cores);
        if let Some(bytes) = self.memory_bytes {
            line += &format!(", {} GiB", bytes.div_ceil(1 << 30));
        }
        line += &format!(", {}", self.os);
        if let Some(commit) = &self.commit {
            line += &format!(", commit {commit}");
        }
        line += &format!(", {}", self.date);
        if self.unoptimised {
            line += ", UNOPTIMISED BUILD";
        }
        line
    }
}

/// The value of the first line `key : value` of a text such as `/proc/cpuinfo`.
fn field(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| {
        line.strip_prefix(key)?
            .trim_start()
            .strip_prefix([':', '='])
    })?;
    Some(line.trim().trim_matches('"').to_owned())
}

fn processor() -> Option<String> {
    let text = file::read_to_string(Path::new("/proc/cpuinfo")).ok()?;
    field(&text, "model name").or_else(|| field(&text, "Model"))
}

fn memory_bytes() -> Option<u64> {
    let text = file::read_to_string(Path::new("/proc/meminfo")).ok()?;
    let total = field(&text, "MemTotal")?;
    let kibibytes: u64 = total.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn operating_system() -> String {
    let name = file::read_to_string(Path::new("/etc/os-release"))
        .ok()
        .and_then(|text| field(&text, "PRETTY_NAME"))
        .unwrap_or_else(|| std::env::consts::OS.to_owned());
    let kernel = file::read_to_string(Path::new("/proc/sys/kernel/osrelease"))
        .map(|release| format!(", kernel {}", release.trim()))
        .unwrap_or_default();
    format!("{name}{kernel}, {}", std::env::consts::ARCH)
}

/// The commit of the checkout that the program lies in, as in [`Machine::commit`].
pub fn commit() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("git")
        .arg("-C")
        .arg(program.parent()?)
        .args(["describe", "--always", "--dirty", "--exclude=*"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

fn date() -> String {
    /// From 1970 to 2000, in microseconds.
    const EPOCHS_APART: i64 = 946_684_800 * 1_000_000;
    let seconds = time::wall_clock_us() / 1_000_000 * 1_000_000;
    let text = Value::Timestamp(seconds - EPOCHS_APART).to_text();
    format!("{} UTC", text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_system_files() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmodel name\t: Other\n";
        assert_eq!(
            field(text, "model name").as_deref(),
            Some("Some CPU @ 3 GHz")
        );
        assert_eq!(
            field("PRETTY_NAME=\"An OS\"\n", "PRETTY_NAME").as_deref(),
            Some("An OS")
        );
        assert_eq!(field(text, "absent"), None);
    }

    #[test]
    fn the_current_machine_has_a_core_and_a_date() {
        let machine = Machine::current();
        assert!(machine.cores >= 1);
        assert!(machine.date.starts_with("20"), "{}", machine.date);
        assert!(machine.line().contains(&machine.cpu));
    }
}
