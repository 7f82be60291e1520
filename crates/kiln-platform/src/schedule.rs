//! Named places in the code where a test may hold one thread and run another.

/// A place called `name`: a protocol's phase boundary, written `protocol.phase`. On virtual cores
/// a scheduling point that a script can refer to (`sim::Config::script`); nothing on real ones.
#[inline(always)]
pub fn point(name: &'static str) {
    #[cfg(kiln_sim)]
    crate::backend::runtime::point(name);
    #[cfg(not(kiln_sim))]
    let _ = name;
}
