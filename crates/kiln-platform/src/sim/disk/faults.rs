//! Errors that a simulated disk makes.

use super::super::queue::Dice;
use super::operation::Request;

/// What goes wrong with one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A read fails (EIO).
    Read,
    /// A write fails (EIO) after any part of it was written.
    Write,
    /// A sync fails (EIO) after any of the changes got to the medium. The cache keeps the data of a
    /// file and takes it to be written: later syncs succeed, and a crash loses it. So on ext4 and
    /// XFS. Changes of entries are still to be written.
    SyncKeepsCache,
    /// The same, and the cache holds what is on the medium from then on, entries as well. So on
    /// Btrfs.
    SyncLosesCache,
    /// There is no room for a write, for room to be reserved, or for a new entry (ENOSPC).
    Full,
    /// A read or a write ends after a part of it, without an error.
    Short,
    /// A signal interrupts a read, a write or a sync before it has done anything (EINTR).
    Interrupted,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 7] = [
        Fault::Read,
        Fault::Write,
        Fault::SyncKeepsCache,
        Fault::SyncLosesCache,
        Fault::Full,
        Fault::Short,
        Fault::Interrupted,
    ];

    /// Whether it can happen to such an operation.
    fn fits(self, request: Request) -> bool {
        use Request as R;
        match self {
            Fault::Read => matches!(request, R::Read),
            Fault::Write => matches!(request, R::Write | R::DurableWrite),
            Fault::SyncKeepsCache | Fault::SyncLosesCache => {
                matches!(request, R::SyncFile | R::SyncDirectory)
            }
            Fault::Full => matches!(
                request,
                R::Write | R::DurableWrite | R::Reserve | R::Create | R::MakeDirectory
            ),
            Fault::Short => matches!(request, R::Read | R::Write | R::DurableWrite),
            Fault::Interrupted => matches!(
                request,
                R::Read | R::Write | R::DurableWrite | R::SyncFile | R::SyncDirectory
            ),
        }
    }
}

/// Which faults are to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// From which operation on, and what; each happens once.
    planned: Vec<(u64, Fault)>,
    /// One operation in so many, on the average, has one of these.
    random: Option<(u32, Vec<Fault>)>,
}

impl Faults {
    pub(super) fn plan(&mut self, operation: u64, fault: Fault) {
        self.planned.push((operation, fault));
    }

    pub(super) fn set_random(&mut self, one_in: u32, faults: &[Fault]) {
        self.random = (one_in > 0 && !faults.is_empty()).then(|| (one_in, faults.to_vec()));
    }

    /// What goes wrong with this operation.
    pub(super) fn draw(
        &mut self,
        operation: u64,
        request: Request,
        dice: &mut Dice,
    ) -> Option<Fault> {
        let due = |(from, fault): &(u64, Fault)| *from <= operation && fault.fits(request);
        if let Some(at) = self.planned.iter().position(due) {
            return Some(self.planned.remove(at).1);
        }
        let (one_in, faults) = self.random.as_ref()?;
        if dice.below(*one_in as usize) != 0 {
            return None;
        }
        let fitting: Vec<Fault> = faults
            .iter()
            .copied()
            .filter(|fault| fault.fits(request))
            .collect();
        (!fitting.is_empty()).then(|| fitting[dice.below(fitting.len())])
    }
}
