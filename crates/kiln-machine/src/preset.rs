//! The shape of a machine and what its accesses cost.

use crate::work::WorkCosts;

/// The most cores a machine may have.
pub const MAX_CORES: usize = 128;
/// The most sockets a machine may have.
pub const MAX_SOCKETS: usize = 8;
/// How many distances between two sockets are told apart: 0 is the same socket, the others what the
/// machine's interconnect makes of them (in most machines hops).
pub const DISTANCES: usize = 4;

/// The size of a cache line in bytes.
pub(crate) const LINE_BYTES: usize = 64;

/// The size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShape {
    /// Its capacity in bytes.
    pub bytes: usize,
    /// Its associativity.
    pub ways: usize,
}

impl CacheShape {
    /// How many lines it has room for.
    pub const fn lines(&self) -> usize {
        self.bytes / LINE_BYTES
    }
}

/// What accesses cost, in picoseconds. The arrays are indexed by the distance between the core that
/// asks and the one that answers: a core that holds the line, a last-level cache, a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A load that the first-level cache serves.
    pub first_level_ps: u64,
    /// A load that the second-level cache serves.
    pub second_level_ps: u64,
    /// A load that the socket's last-level cache serves.
    pub last_level_ps: u64,
    /// How much of the time that a load takes from the core's own caches, the last-level cache or
    /// memory the core stands still, in percent. What follows a load does not always need it, and
    /// processors execute out of order and past predicted branches, so that part of the time is
    /// hidden by other work and by other loads. 100 is a core that waits for every load. Lines that
    /// come from other cores are waited for in full.
    pub exposed_percent: u64,
    /// A store, as long as the store buffer has room: the rate at which stores retire.
    pub store_ps: u64,
    /// An atomic read-modify-write on a line that the core owns.
    pub atomic_ps: u64,
    /// Issuing a prefetch.
    pub prefetch_ps: u64,
    /// Getting a line that another core holds modified.
    pub modified_ps: [u64; DISTANCES],
    /// Getting a line from a clean copy in another core's private caches (distance 0) or in another
    /// socket's caches.
    pub clean_ps: [u64; DISTANCES],
    /// How long a core can go on using a line after the request of another core that takes it away
    /// was let through: requests travel too.
    pub linger_ps: u64,
    /// Having the farthest of the other copies invalidated, by a core that has the line already.
    pub invalidate_ps: [u64; DISTANCES],
    /// Getting a line from memory.
    pub memory_ps: [u64; DISTANCES],
    /// How long a last-level cache is occupied by one request for a line, so that requests for
    /// the same line queue even when all of them only read.
    pub occupancy_ps: u64,
}

/// A machine: its shape, its latencies, and what the engine's instructions cost on its cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name it is asked for by.
    pub name: &'static str,
    /// The processor and how many there are of it, in words.
    pub description: &'static str,
    /// How many sockets it has, or dies that each have a memory and a last-level cache of their
    /// own.
    pub sockets: usize,
    /// How many cores share a socket.
    pub cores_per_socket: usize,
    /// The distance between each two sockets, an index into the arrays of [`Costs`]; symmetric, and
    /// 0 on the diagonal.
    pub distances: [[u8; MAX_SOCKETS]; MAX_SOCKETS],
    /// Each core's first-level data cache.
    pub first_level: CacheShape,
    /// Each core's second-level cache.
    pub second_level: CacheShape,
    /// Each socket's last-level cache.
    pub last_level: CacheShape,
    /// How many stores a core may have waiting.
    pub store_buffer: usize,
    /// How many lines a core may have on their way: its line fill buffers.
    pub prefetches_in_flight: usize,
    /// Whether a load of a line that another core has modified takes it away, so that a store after
    /// it asks no other core. Processors do so for the sake of read-modify-write sequences. The
    /// next core that reads the line shares it.
    pub migratory: bool,
    /// What accesses cost.
    pub costs: Costs,
    /// How far a piece of work may be shorter or longer than its price, in percent; on average it
    /// is the price. Real cores never take the same time twice (branches, instruction fetches,
    /// translations), and without this two cores that do the same fall into step: they either
    /// always or never collide.
    pub jitter_percent: u64,
    /// What the engine's work between accesses costs.
    pub work: WorkCosts,
}

impl Preset {
    /// How many cores the machine has; a [`Machine`](crate::Machine) may be made with fewer.
    pub const fn cores(&self) -> usize {
        self.sockets * self.cores_per_socket
    }

    /// The socket of a core: cores are numbered socket by socket, so that few cores sit together.
    pub const fn socket_of(&self, core: usize) -> usize {
        core / self.cores_per_socket
    }

    /// Whether the shape is one that the model can be made for.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: String| Err(format!("machine {:?}: {what}", self.name));
        if self.sockets == 0 || self.sockets > MAX_SOCKETS {
            return wrong(format!(
                "{} sockets, but 1 to {MAX_SOCKETS} are possible",
                self.sockets
            ));
        }
        if self.cores_per_socket == 0 || self.cores() > MAX_CORES {
            return wrong(format!(
                "{} cores, but 1 to {MAX_CORES} are possible",
                self.cores()
            ));
        }
        for one in 0..self.sockets {
            for other in 0..self.sockets {
                let distance = self.distances[one][other];
                if usize::from(distance) >= DISTANCES
                    || distance != self.distances[other][one]
                    || (distance == 0) != (one == other)
                {
                    return wrong(format!(
                        "the distance between sockets {one} and {other} is {distance}"
                    ));
                }
            }
        }
        for shape in [self.first_level, self.second_level, self.last_level] {
            if shape.ways == 0 || shape.lines() < shape.ways {
                return wrong(format!(
                    "a cache of {} bytes and {} ways",
                    shape.bytes, shape.ways
                ));
            }
        }
        if self.costs.exposed_percent > 100 {
            return wrong(format!(
                "{} percent of a load's time",
                self.costs.exposed_percent
            ));
        }
        if self.jitter_percent > 100 {
            return wrong(format!(
                "work that varies by {} percent",
                self.jitter_percent
            ));
        }
        if self.store_buffer == 0 || self.prefetches_in_flight == 0 {
            return wrong("a core without room for a store or a prefetch".to_owned());
        }
        Ok(())
    }
}
