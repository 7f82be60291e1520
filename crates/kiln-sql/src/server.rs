//! What the process that serves databases says of itself.

use kiln_platform::sync::OnceLock;
use kiln_platform::time::wall_clock_us;

/// The version of PostgreSQL that clients take the server for.
pub(crate) const VERSION: &str = "15.0 (Kiln)";

/// When the first database of the process was opened, in microseconds since 1970.
static STARTED_US: OnceLock<i64> = OnceLock::new();

/// When the process began to serve, in microseconds since 1970.
pub(crate) fn started_us() -> i64 {
    *STARTED_US.get_or_init(wall_clock_us)
}
