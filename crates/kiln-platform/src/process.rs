//! What the system says of this process, and what it is told by it.

use std::io;

/// Bytes of memory that the process has in use, as the system counts them; `None` where it does not
/// say.
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: it reads a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page).ok()?)
}

/// Files and sockets that the process has open; `None` where the system does not say.
pub fn descriptors() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

/// Seconds of all cores that the process has used; `None` where the system does not say.
pub fn cpu_s() -> Option<f64> {
    // SAFETY: all bytes zero are a value of the structure, which the system fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a structure of that type.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } != 0 {
        return None;
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Some(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

/// Tells the service manager how the process stands (sd_notify(3): `READY=1`, `STOPPING=1`,
/// `STATUS=…`). Does nothing where no manager asked for that with NOTIFY_SOCKET.
///
/// # Errors
/// The system's, when the manager cannot be told.
#[cfg(target_os = "linux")]
pub fn notify_manager(state: &str) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(&name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

/// There is no such manager here.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn notify_manager(_state: &str) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_files_and_uses_time() {
        assert!(resident_bytes().expect("Linux says it") > 100_000);
        assert!(descriptors().expect("Linux says it") > 2);
        assert!(cpu_s().expect("Linux says it") >= 0.0);
    }
}
