//! Files and directories of the machine: the contract on its file systems, locks between processes,
//! full disks, rights.

mod disk_contract;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kiln_platform::disk::{BLOCK_BYTES, Directory, DurableBy, Kind};

/// A directory that is gone after the test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(parent: &Path, name: &str) -> Temporary {
        let path = parent.join(format!("kiln-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Directory::create(&path).expect("the test may write there");
        Temporary(path)
    }

    fn in_target(name: &str) -> Temporary {
        Temporary::new(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    fn open(&self) -> Directory {
        Directory::open(&self.0).expect("it was made")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn check_contract(temporary: &Temporary) {
    for (name, part) in disk_contract::PARTS {
        let root = temporary.open().create_subdirectory(name);
        part(&root.expect("it can be made"));
    }
}

#[test]
fn the_contract_holds_on_a_disk() {
    check_contract(&Temporary::in_target("contract"));
}

#[cfg(target_os = "linux")]
#[test]
fn the_contract_holds_in_memory() {
    let memory = Path::new("/dev/shm");
    if !Directory::open(memory).is_ok_and(|found| found.is_volatile() == Ok(true)) {
        println!("skipped: /dev/shm is no tmpfs here");
        return;
    }
    check_contract(&Temporary::new(memory, "contract"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_without_direct_writes_is_written_through_the_cache() {
    let Ok(process) = Directory::open(Path::new("/proc/self")) else {
        println!("skipped: there is no /proc here");
        return;
    };
    // The name of this process: a file that can be written and takes no direct writes.
    let name = process.open_log_file("comm").expect("it is there");
    assert_eq!(name.durable_by(), DurableBy::Sync);
    assert_eq!(name.block_bytes(), BLOCK_BYTES);
}

/// Starts this test binary again for the one ignored test `name`, which finds `directory` in its
/// environment.
fn start(name: &str, directory: &Path) -> Child {
    let binary = std::env::current_exe().expect("a test knows its binary");
    Command::new(binary)
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a test can be started again")
}

const DIRECTORY: &str = "KILN_TEST_DISK_DIRECTORY";

/// The directory that the test which started this process works in; none where ignored tests run by
/// themselves.
fn directory_of_parent() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// What a process of this test prints last; one that fails never does.
const DONE: &str = "<done>";

/// Waits until the child says that it is done.
fn wait_until_done(child: &mut Child) -> impl Sized + use<> {
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let done = lines.find(|line| line.as_ref().is_ok_and(|line| line.ends_with(DONE)));
    assert!(done.is_some(), "the process ended before it was done");
    lines
}

/// Starts `name` and waits until it has ended.
fn run(name: &str, directory: &Path) {
    let output = start(name, directory).wait_with_output();
    let output = output.expect("a child ends");
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && said.contains(DONE);
    assert!(passed, "{name}: {said}");
    for line in said.lines().filter(|line| line.contains("skipped")) {
        println!("{line}");
    }
}

#[test]
fn a_lock_goes_with_a_process_that_is_killed() {
    let temporary = Temporary::in_target("lock");
    let mut child = start("process_that_holds_a_lock", &temporary.0);
    let _output = wait_until_done(&mut child);
    let directory = temporary.open();
    let refused = directory.lock("LOCK", "the parent").expect_err("held");
    let holder = format!("process {}: the child", child.id());
    assert_eq!(*refused.kind(), Kind::Locked { holder });
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    let lock = directory.lock("LOCK", "the parent").expect("it is free");
    drop(lock);
}

#[test]
#[ignore = "a process that another test starts"]
fn process_that_holds_a_lock() {
    let Some(path) = directory_of_parent() else {
        return;
    };
    let directory = Directory::open(&path).expect("the parent made it");
    let _lock = directory.lock("LOCK", "the child").expect("it is free");
    println!("{DONE}");
    // Until the parent kills this process, or ends.
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// Fills a file until there is no room, and looks at what the file does then.
fn fill(directory: &Directory) {
    let file = directory.create_file("filled").expect("there is room");
    let full = (0..1_000)
        .find_map(|piece| file.write_at(piece * 4_096, &[1; 4_096]).err())
        .expect("4 MB do not fit");
    assert_eq!(*full.kind(), Kind::Full, "{full}");
    assert_eq!(file.sync(), Err(full), "the file is poisoned");
    let other = directory.create_file("allocated").expect("there is room");
    let refused = other.allocate(4 << 20).and_then(|mut allocation| {
        while !allocation.step()? {}
        Ok(())
    });
    let refused = refused.expect_err("4 MiB do not fit");
    assert_eq!(*refused.kind(), Kind::Full, "{refused}");
}

#[test]
fn a_file_that_reaches_its_limit_is_full() {
    let temporary = Temporary::in_target("limit");
    run("process_with_a_limit", &temporary.0);
}

#[test]
#[ignore = "a process that another test starts"]
fn process_with_a_limit() {
    let Some(path) = directory_of_parent() else {
        return;
    };
    let limit = libc::rlimit {
        rlim_cur: 100_000,
        rlim_max: 100_000,
    };
    // SAFETY: both calls change this process alone, which exists for this test.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
    Directory::create(&path)
        .map(|directory| fill(&directory))
        .expect("the test may write there");
    println!("{DONE}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_file_system_is_full() {
    let temporary = Temporary::in_target("full");
    run("process_with_a_small_file_system", &temporary.0);
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "a process that another test starts"]
fn process_with_a_small_file_system() {
    use std::os::unix::ffi::OsStrExt;
    let Some(path) = directory_of_parent() else {
        return;
    };
    let target = std::ffi::CString::new(path.as_os_str().as_bytes()).expect("no zeros");
    // SAFETY: the process gets mounts of its own first, so that what is mounted goes with it.
    let mounted = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(
                c"tmpfs".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                c"size=262144".as_ptr().cast(),
            ) == 0
    };
    if mounted {
        let directory = Directory::open(&path).expect("it is mounted");
        assert_eq!(directory.is_volatile(), Ok(true));
        let free = directory.free_bytes().expect("it is known");
        assert!(free <= 262_144, "{free} bytes are free");
        fill(&directory);
        assert_eq!(directory.free_bytes(), Ok(0));
    } else {
        let why = std::io::Error::last_os_error();
        println!("skipped: this process may not mount a small file system: {why}");
    }
    println!("{DONE}");
}

#[test]
fn what_is_not_permitted_is_denied() {
    use std::os::unix::fs::PermissionsExt;
    let temporary = Temporary::in_target("denied");
    let directory = temporary.open();
    directory.create_file("file").expect("the test may write");
    let read_only = |path: &Path, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions).expect("its owner may");
    };
    read_only(&temporary.0.join("file"), 0o444);
    read_only(&temporary.0, 0o555);
    run("process_without_rights", &temporary.0);
    read_only(&temporary.0, 0o755);
}

#[test]
#[ignore = "a process that another test starts"]
fn process_without_rights() {
    let Some(path) = directory_of_parent() else {
        return;
    };
    /// The user of this number owns nothing.
    const NOBODY: libc::uid_t = 65_534;
    // SAFETY: both calls change this process alone, which exists for this test. Only root may do
    // everything, so only root has to become another user.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setgid(NOBODY), 0);
            assert_eq!(libc::setuid(NOBODY), 0);
        }
    }
    match Directory::open(&path) {
        Ok(directory) => {
            let denied = [
                directory.create_file("new").map(|_| ()),
                directory.open_file_to_write("file").map(|_| ()),
                directory.open_log_file("file").map(|_| ()),
                directory.remove_file("file"),
                directory.rename("file", "other"),
                directory.lock("LOCK", "test").map(|_| ()),
                directory.create_subdirectory("inner").map(|_| ()),
            ];
            for refused in denied {
                let error = refused.expect_err("it is not permitted");
                assert_eq!(*error.kind(), Kind::Denied, "{error}");
            }
            assert_eq!(directory.list().map(|entries| entries.len()), Ok(1));
        }
        Err(error) => println!("skipped: another user may not look there: {error}"),
    }
    println!("{DONE}");
}

#[test]
fn what_is_made_is_for_its_user_alone_and_directories_above_it_are_not() {
    use std::os::unix::fs::PermissionsExt;
    let temporary = Temporary::in_target("private");
    let mode = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("it was made");
        metadata.permissions().mode() & 0o777
    };
    let (above, made) = (temporary.0.join("above"), temporary.0.join("above/made"));
    let directory = Directory::create(&made).expect("the test may write there");
    directory.create_file("file").expect("it is new");
    let _lock = directory.lock("LOCK", "test").expect("it is free");
    assert_eq!(mode(&made), 0o700);
    assert_eq!(mode(&made.join("file")), 0o600);
    assert_eq!(mode(&made.join("LOCK")), 0o600);
    let plain = temporary.0.join("plain");
    std::fs::create_dir(&plain).expect("the test may write there");
    assert_eq!(mode(&above), mode(&plain));
}
