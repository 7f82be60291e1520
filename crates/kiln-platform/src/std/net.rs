//! Sockets: one system call for each operation, and its error as it is. What is repeated, and what
//! an error means, is decided in [`crate::net`].

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Token};

use crate::net::{Address, BACKLOG, Event, Peer, WAKER_TOKEN};

/// Raises the bound on open descriptors to `count`, as far as the process may; returns what it is
/// then.
pub(crate) fn allow_descriptors(count: u64) -> io::Result<u64> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls get a limit of this frame.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) != 0 {
            return Err(io::Error::last_os_error());
        }
        if limits.rlim_cur < count {
            limits.rlim_cur = limits.rlim_max.min(count);
            if libc::setrlimit(libc::RLIMIT_NOFILE, &limits) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(limits.rlim_cur)
}

/// Asks the system for a host's addresses.
pub(crate) fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// The system's poller.
#[derive(Debug)]
pub(crate) struct RawPoller(mio::Poll);

/// What ends its wait.
#[derive(Debug)]
pub(crate) struct RawWaker(mio::Waker);

/// Room for what the system tells.
#[derive(Debug)]
pub(crate) struct RawEvents(mio::Events);

/// A socket that accepts.
#[derive(Debug)]
pub(crate) enum RawListener {
    Tcp(TcpListener),
    Unix { socket: UnixListener, file: File },
}

/// The file of a Unix socket, removed when dropped.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    /// Device and number, by which a later file at the same path is told from this one.
    identity: (u64, u64),
}

/// A connected socket.
#[derive(Debug)]
pub(crate) enum RawStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl RawEvents {
    pub(crate) fn with_capacity(events_max: usize) -> RawEvents {
        RawEvents(mio::Events::with_capacity(events_max))
    }
}

impl RawWaker {
    pub(crate) fn wake(&self) {
        // It adds to a counter in the kernel, which fails for a closed descriptor alone, and this
        // one is open.
        let woken = self.0.wake();
        debug_assert!(woken.is_ok(), "{woken:?}");
    }
}

impl RawPoller {
    pub(crate) fn new() -> io::Result<(RawPoller, RawWaker)> {
        let poll = mio::Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), Token(WAKER_TOKEN))?;
        Ok((RawPoller(poll), RawWaker(waker)))
    }

    pub(crate) fn wait(
        &mut self,
        events: &mut RawEvents,
        list: &mut Vec<Event>,
        timeout_ns: Option<u64>,
    ) -> io::Result<()> {
        let timeout = timeout_ns.map(Duration::from_nanos);
        self.0.poll(&mut events.0, timeout)?;
        let of_sockets = events
            .0
            .iter()
            .filter(|event| event.token().0 != WAKER_TOKEN);
        list.extend(of_sockets.map(|event| {
            let broken = event.is_error() || event.is_write_closed();
            Event {
                token: crate::net::Token(event.token().0),
                readable: event.is_readable() || event.is_read_closed() || broken,
                writable: event.is_writable() || broken,
                closed: event.is_read_closed() || broken,
            }
        }));
        Ok(())
    }

    fn register(
        &self,
        source: &mut dyn Source,
        token: usize,
        interest: Interest,
    ) -> io::Result<()> {
        source.register(self.0.registry(), Token(token), interest)
    }

    fn deregister(&self, source: &mut dyn Source) -> io::Result<()> {
        source.deregister(self.0.registry())
    }
}

impl RawListener {
    pub(crate) fn tcp(address: SocketAddr) -> io::Result<RawListener> {
        let socket = TcpListener::bind(address)?;
        listen(&socket)?;
        Ok(RawListener::Tcp(socket))
    }

    pub(crate) fn unix(path: &Path, mode: u32) -> io::Result<RawListener> {
        let socket = match bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(path)?;
                bind(path)?
            }
            bound => bound?,
        };
        let metadata = fs::symlink_metadata(path)?;
        let file = File {
            path: path.to_owned(),
            identity: (metadata.dev(), metadata.ino()),
        };
        // Before it listens: until then it refuses connections, so that none gets in by the rights
        // it was made with.
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        listen(&socket)?;
        let socket = unix::UnixListener::from(socket);
        socket.set_nonblocking(true)?;
        let socket = UnixListener::from_std(socket);
        Ok(RawListener::Unix { socket, file })
    }

    /// The address of a listener over TCP.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        match self {
            RawListener::Tcp(socket) => socket.local_addr(),
            RawListener::Unix { file, .. } => Err(io::Error::other(format!(
                "{} is a path",
                file.path.display()
            ))),
        }
    }

    pub(crate) fn accept(&self) -> io::Result<(RawStream, Peer)> {
        match self {
            RawListener::Tcp(socket) => {
                let (stream, address) = socket.accept()?;
                prepare(&stream)?;
                Ok((RawStream::Tcp(stream), Peer::Tcp(address)))
            }
            RawListener::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                let user = user_of(&stream);
                Ok((RawStream::Unix(stream), Peer::Unix { user }))
            }
        }
    }

    pub(crate) fn register(&mut self, poller: &RawPoller, token: usize) -> io::Result<()> {
        poller.register(self.source(), token, Interest::READABLE)
    }

    pub(crate) fn deregister(&mut self, poller: &RawPoller) -> io::Result<()> {
        poller.deregister(self.source())
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            RawListener::Tcp(socket) => socket,
            RawListener::Unix { socket, .. } => socket,
        }
    }
}

impl RawStream {
    pub(crate) fn connect(address: &Address) -> io::Result<RawStream> {
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(*address)?;
                prepare(&stream)?;
                Ok(RawStream::Tcp(stream))
            }
            Address::Unix(path) => UnixStream::connect(path).map(RawStream::Unix),
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            RawStream::Tcp(stream) => (&mut &*stream).read(buffer),
            RawStream::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            RawStream::Tcp(stream) => (&mut &*stream).write(bytes),
            RawStream::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        match self {
            RawStream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            RawStream::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    pub(crate) fn register(&mut self, poller: &RawPoller, token: usize) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        poller.register(self.source(), token, interest)
    }

    pub(crate) fn deregister(&mut self, poller: &RawPoller) -> io::Result<()> {
        poller.deregister(self.source())
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            RawStream::Tcp(stream) => stream,
            RawStream::Unix(stream) => stream,
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let is_ours = |metadata: fs::Metadata| (metadata.dev(), metadata.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            // A file that stays behind is stale, and the next listener replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Small writes leave at once, and a peer that is gone is noticed at last.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the value is an integer of the size that is given.
    outcome(unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_KEEPALIVE,
            std::ptr::from_ref(&on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    })
}

/// A bound socket of the file at `path`, which does not listen yet.
fn bind(path: &Path) -> io::Result<OwnedFd> {
    let bytes = path.as_os_str().as_bytes();
    // SAFETY: the type is of integers, of which zeroes are some.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    if bytes.is_empty() || bytes.contains(&0) || bytes.len() >= address.sun_path.len() {
        let max = address.sun_path.len() - 1;
        let words = format!("a socket's path has 1 to {max} bytes, none of them 0");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the call takes no memory.
    let descriptor = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened above, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: the descriptor is open. A child that another thread starts in between inherits it,
    // and nothing more.
    outcome(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the descriptor is open, and the address is one of the size that is given.
    outcome(unsafe {
        libc::bind(
            descriptor,
            std::ptr::from_ref(&address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    })?;
    Ok(socket)
}

/// Removes the file at `path` if it is a socket on which no process listens.
fn remove_stale(path: &Path) -> io::Result<()> {
    let refused = |words: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, words));
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        // Its listener has removed it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        return refused("the file is no socket");
    }
    match UnixStream::connect(path) {
        Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // It has a queue, which is full.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            refused("a process listens on it")
        }
        Err(error) => Err(error),
        Ok(_) => refused("a process listens on it"),
    }
}

/// Listens, or changes the length of the queue of a socket that listens.
fn listen(socket: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    outcome(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })
}

/// The user as whom the peer connected.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn user_of(stream: &UnixStream) -> Option<u32> {
    let mut found = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut bytes = size_of_val(&found) as libc::socklen_t;
    // SAFETY: the descriptor is open, and there is room for what the call fills in.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut found).cast(),
            &mut bytes,
        )
    };
    (status == 0).then_some(found.uid)
}

/// The user as whom this process runs.
pub(crate) fn own_user() -> u32 {
    // SAFETY: the call has no conditions, and cannot fail.
    unsafe { libc::geteuid() }
}

/// The user as whom the peer connected; not asked for here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn user_of(_: &UnixStream) -> Option<u32> {
    None
}

/// What a system call that returns 0 or fails has done.
fn outcome(status: libc::c_int) -> io::Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
