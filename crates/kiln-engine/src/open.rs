//! Opening an engine: its options are checked, its threads start.

use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_storage::error::{Error, Result, SqlState};

use crate::engine::Engine;
use crate::inbox;
use crate::kernel::{EngineInner, SlotUser, WorkerSlot};
use crate::options::Options;

impl Engine {
    /// Opens an empty database and starts its threads.
    ///
    /// # Errors
    /// 22023 for options that make no sense, for a data directory, and for a protocol that they do
    /// not allow, 53000 when the system grants no more threads.
    pub fn open(options: Options) -> Result<Engine> {
        options.validate()?;
        if options.data_dir.is_some() {
            let message = "an engine by itself keeps no data directory";
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint("Open a Database with it, or leave data_dir out."));
        }
        if options.reserve_bytes > 0 {
            kiln_platform::memory::reserve(options.reserve_bytes).map_err(|error| {
                let bytes = options.reserve_bytes;
                let message = format!("cannot set {bytes} bytes of memory aside: {error}");
                Error::new(SqlState::OUT_OF_MEMORY, message)
                    .with_hint("Lower reserve_bytes, or leave it at 0.")
            })?;
        }
        let inner = Arc::new(EngineInner::new(options));
        let address = Arc::as_ptr(&inner).addr();
        kiln_platform::memory::name_range(address, size_of::<EngineInner>(), || {
            "engine".to_owned()
        });
        inner.gate.name_memory();
        // From here on an error drops the engine, which ends the threads started so far.
        let engine = Engine::of(inner.clone());
        let ticker = inner.clone();
        engine.start("kiln-epochs", move || ticker.tick())?;
        for position in 0..inner.options.workers {
            let worker_slot = WorkerSlot::new(&inner, SlotUser::Worker(position))
                .expect("the options leave worker slots for all workers");
            let shared = inner.clone();
            let body = move || {
                if shared.options.pin_workers {
                    thread::pin_to_core(position);
                }
                inbox::work(&shared.inboxes, position, worker_slot);
            };
            engine.start(&format!("kiln-{position}"), body)?;
        }
        Ok(engine)
    }
}
